# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
#
# The CMakeLists.txt of the project that setup.py stages to generate the interfaces.
# INTERFACES, the .msg and .srv files, comes from its command line.

cmake_minimum_required(VERSION 3.16)
project(robotmem_ros C CXX)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)

find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
find_package(builtin_interfaces REQUIRED)
find_package(geometry_msgs REQUIRED)
find_package(std_msgs REQUIRED)
rosidl_generate_interfaces(${PROJECT_NAME} ${INTERFACES}
  DEPENDENCIES builtin_interfaces geometry_msgs std_msgs)

# An interface library names the Python headers of the machine that built it. Some underlays
# (the ROS wheels) were built elsewhere, and CMake refuses a directory that is not there:
# leave such a directory out of what this project sees. The underlay itself stays untouched.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  if(target MATCHES "__rosidl_generator_py$")
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    set(present "")
    foreach(directory IN LISTS directories)
      if(EXISTS "${directory}")
        list(APPEND present "${directory}")
      endif()
    endforeach()
    set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${present}")
  endif()
endforeach()

# For the same reason, do not pass the headers of this machine on to those who use ours.
set_property(TARGET ${PROJECT_NAME}__rosidl_generator_py
  PROPERTY INTERFACE_INCLUDE_DIRECTORIES "")

ament_export_dependencies(rosidl_default_runtime)
ament_package()
