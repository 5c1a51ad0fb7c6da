"""Programs over the two cards of the guest of tests/vm, with a daemon for each."""

import os

import job


class TwoCards(job.ProgramTest):
    def start_daemon(self, name, *flags):
        """The peers are those of the other daemon, so the wall must let them through."""
        policy = self.folder / f"{name}.textproto"
        policy.write_text('tenant { name: "uid" sharing: SHARING_EACH_UID connections { connect { prefix: "::/0" } } }\n'
                          'default_tenant: "uid"\n')
        return super().start_daemon(name, f"--policy_file={policy}", *flags)

    def setUp(self):
        super().setUp()
        self.other = self.start_daemon("other", "--verbs_devices=rxb")


def main(about):
    """Runs the tests of the calling file."""
    os.environ["RNICD_TEST_DAEMON_FLAGS"] = "--provider=verbs --verbs_devices=rxa"
    job.main(about)
