# Installed files by component: rnicd (the daemon, its tool and their data files), librnicd0 (librnicd.so), librnicd
# (headers and libraries for building programs), librnicd-fi (the provider for libfabric), device-plugin and fr-dkms
# (the sources of the kernel module, for DKMS). Each is also a Debian package (packaging.cmake). The rules for programs
# and libraries are beside their targets; those for files are here.
include(GNUInstallDirs)
# systemd searches lib, never the architecture-specific directory that CMAKE_INSTALL_LIBDIR may be.
set(rnicd_systemd_dir lib/systemd/system)

install(FILES ${PROJECT_BINARY_DIR}/client/ctl/rnicctl.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME rnicctl COMPONENT rnicd)

install(FILES deploy/systemd/rnicd.sysusers.conf DESTINATION lib/sysusers.d RENAME rnicd.conf COMPONENT rnicd)
install(FILES deploy/systemd/rnicd.tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME rnicd.conf COMPONENT rnicd)
configure_file(cmake/install_for_prefix.cmake.in install_for_prefix.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/install_for_prefix.cmake COMPONENT rnicd)

install(FILES deploy/policy.example.textproto DESTINATION ${CMAKE_INSTALL_DATADIR}/rnicd COMPONENT rnicd)
install(FILES deploy/prometheus/rnicd.rules.yaml deploy/prometheus/prometheusrule.yaml deploy/prometheus/podmonitor.yaml
        deploy/prometheus/scrape.example.yaml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/rnicd/prometheus COMPONENT rnicd)
install(FILES deploy/grafana/dashboard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/rnicd/grafana COMPONENT rnicd)

install(FILES deploy/man/rnicd.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT rnicd)
install(FILES deploy/man/rnicctl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT rnicd)
# The pages keep their directory structure, so that the links between them work.
install(FILES README.md SECURITY.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rnicd)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rnicd FILES_MATCHING PATTERN "*.md"
    PATTERN "*.svg" PATTERN adr EXCLUDE)

if(TARGET rnicd-device-plugin)
  install(FILES deploy/man/rnicd-device-plugin.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT device-plugin)
endif()

# The symbols of all programs and shared objects, where debuggers look for them: under the build id that the linker wrote.
foreach(program rnicd rnicctl rnicd-device-plugin rnicd_shared rnicd_fi rnicd_heap)
  if(TARGET ${program})
    install(CODE "set(program \"$<TARGET_FILE:${program}>\")\nset(OBJCOPY \"${CMAKE_OBJCOPY}\")" COMPONENT debug-symbols EXCLUDE_FROM_ALL)
    install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_debug_symbols.cmake COMPONENT debug-symbols EXCLUDE_FROM_ALL)
  endif()
endforeach()

# The kernel module's sources, where DKMS looks for them, and what its device needs.
file(GLOB module_sources CONFIGURE_DEPENDS kernel/rnicd_fr/*.c kernel/rnicd_fr/*.h)
configure_file(deploy/dkms/dkms.conf.in dkms/dkms.conf @ONLY)
install(FILES kernel/rnicd_fr/Kbuild ${module_sources} ${PROJECT_BINARY_DIR}/dkms/dkms.conf
    DESTINATION src/rnicd-fr-${PROJECT_VERSION} COMPONENT fr-dkms)
install(FILES deploy/dkms/60-rnicd-fr.rules DESTINATION lib/udev/rules.d COMPONENT fr-dkms)
install(FILES deploy/systemd/rnicd-fr.conf DESTINATION ${rnicd_systemd_dir}/rnicd@.service.d COMPONENT fr-dkms)
