# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A simulated robot as other nodes see one: cmd_vel in; odometry, joint states and a pose out."""

from __future__ import annotations

import math

from geometry_msgs.msg import PoseWithCovarianceStamped, Quaternion, Twist
from hall import Base, Pose2D
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

PERIOD = 0.04
"""Seconds of one step of the simulation, in which everything is published once."""

OBEDIENCE = 0.5
"""Seconds after the last cmd_vel at which the robot stops by itself."""


class SimulatedRobot(Node):
    """A robot in the hall, in a namespace of its own.

    Attributes
    ----------
    base: the robot itself; only who tells the story may look at it.
    slips: how often its wheels began to spin.
    """

    def __init__(self, name: str) -> None:
        super().__init__("simulator", namespace=name)
        self.base = Base()
        self.slips = 0
        self._command = Twist()
        self._left = 0.0
        self._odometry = self.create_publisher(Odometry, "odom", qos_profile_sensor_data)
        self._joints = self.create_publisher(JointState, "joint_states", 10)
        # As a localisation like amcl gives it: in the frame that all robots share.
        self._pose = self.create_publisher(PoseWithCovarianceStamped, "amcl_pose", 10)
        self.create_subscription(Twist, "cmd_vel", self._on_command, 10)
        self.create_timer(PERIOD, self._step)

    def put(self, x: float, y: float) -> None:
        """Set the robot down somewhere, heading along the hall and standing still."""
        self.base.pose = Pose2D(x, y)
        self.base.wheels = (0.0, 0.0)
        self._command = Twist()

    def _on_command(self, command: Twist) -> None:
        self._command, self._left = command, OBEDIENCE

    def _step(self) -> None:
        self._left -= PERIOD
        command = self._command if self._left > 0.0 else Twist()
        before = self.base.slipping
        self.base.step(command.linear.x, command.angular.z, PERIOD)
        self.slips += self.base.slipping and not before
        self._publish()

    def _publish(self) -> None:
        stamp = self.get_clock().now().to_msg()
        odometry = Odometry(child_frame_id="base_link")
        odometry.header.stamp, odometry.header.frame_id = stamp, "odom"
        _fill(odometry.pose.pose, self.base.odometry)
        odometry.twist.twist.linear.x = self.base.speed
        odometry.twist.twist.angular.z = self.base.turn
        self._odometry.publish(odometry)
        joints = JointState(name=["left_wheel", "right_wheel"])
        joints.header.stamp = stamp
        joints.position = list(self.base.angles)
        joints.velocity = list(self.base.wheels)
        self._joints.publish(joints)
        pose = PoseWithCovarianceStamped()
        pose.header.stamp, pose.header.frame_id = stamp, "map"
        _fill(pose.pose.pose, self.base.pose)
        self._pose.publish(pose)


def _fill(message: object, pose: Pose2D) -> None:
    message.position.x, message.position.y = pose.x, pose.y
    message.orientation = Quaternion(z=math.sin(pose.yaw / 2), w=math.cos(pose.yaw / 2))
