# When each test runs. scripts/test runs the tier `first`: what tells a newcomer that the thing works. `scripts/test --all`
# adds `all`: what must pass before a change is kept. `scripts/test --night` runs `night`: what takes long, or needs tools
# of its own. `-` is a test that this build does not have. The first row that matches a name counts; a test without a row
# is an error of CMake. Tests have these tiers as labels, and each tier is a target with the programs that it needs.
#
# A tier is paid for on every change. So a claim is tested once in `first`, and once in each build and on each card that
# can fail differently in `all`; what only measures, or repeats what another row says on another way, is for the night.
set(RNICD_TIERS
    # name of the CTest, a regular expression        release  asan-ubsan  tsan
    "architecture|generators                          first    -           -"
    "architecture_selftest                            all      -           -"
    # Unit tests, and the contract of providers. Those of the sandbox enter it in forked children, in each of which the
    # thread sanitizer starts a thread, and a process with two is refused; its daemon enters it in the suites.
    "rnicd_sandbox_test                               first    all         -"
    "rnicd_.*_test                                    first    all         all"
    "rnicd_conformance                                first    -           -"
    "rnicd_conformance_rings                          all      all         all"
    "rnicd_conformance_networkdirect                  night    -           -"
    "shared_object|manual_pages                       first    -           -"
    "rnicd_library|library_abi                        all      -           -"
    "rnicd_libfabric_endpoints                        first    all         -"
    "rnicd_libfabric_stress                           all      all         all"
    "rnicd_libfabric_night                            night    -           -"
    "libfabric_programs                               all      -           -"
    "rnicd_integration_first                          first    -           -"
    "rnicd_integration                                all      all         -"
    "rnicd_integration_slow                           all      -           -"
    "rnicd_integration_rings                          all      -           all"
    "rnicd_integration_night                          night    night       -"
    "rnicd_kubernetes_(wire|node)                     all      -           -"
    "simulation_kept_seeds                            first    all         -"
    "simulation_fresh_seed                            night    night       -"
    "simulation_.*                                    all      -           -"
    "grant_simulation_fresh_seed                      night    -           -"
    "grant_simulation_.*                              all      -           -"
    "fuzz_corpus_.*                                   -        all         -"
    "python_first|example_python                      first    -           -"
    "python_client|python_style|guides                all      -           -"
    "upgrade(_rows)?                                  all      -           -"
    "systemd_unit|installed_tree|deploy_.*            all      -           -"
    "kubernetes_examples                              all      -           -"
    "observability_(hours|selftest)                   all      -           -"
    "observability_prometheus                         night    -           -"
    "status_page_in_a_browser                         night    -           -"
    "jitter_is_preloaded                              all      -           -"
    "bench_rows_of_one_process                        all      -           -"
    "generated_pages                                  first    -           -"
    "conformance_page                                 all      -           -"
    "types_of_.*                                      all      -           -"
    # In the emulated machine, on the kernel's cards: tests/vm/steps.txt.
    "guest                                            all      -           -"
    "guest_night                                      night    -           -"
    # Scripts that make what they need.
    "soak|fuzz                                        -        night       -"
    "interop|container|arm64|windows|debian13         night    -           -"
    "example_rust|libfabric_programs_night            night    -           -"
    "(booted_)?packages                               night    -           -")

foreach(tier first all night)
  add_custom_target(tier_${tier})
endforeach()

# rnicd_tier_of(test variable): sets the variable to the tier of that test in this build, or to "-".
function(rnicd_tier_of test variable)
  set(column 1)
  if(RNICD_SANITIZE MATCHES "address")
    set(column 2)
  elseif(RNICD_SANITIZE MATCHES "thread")
    set(column 3)
  endif()
  foreach(row IN LISTS RNICD_TIERS)
    string(REGEX REPLACE " +" ";" cells "${row}")
    list(GET cells 0 pattern)
    if(test MATCHES "^(${pattern})$")
      list(GET cells ${column} tier)
      set(${variable} ${tier} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "tests/tiers.cmake has no row for ${test}")
endfunction()
