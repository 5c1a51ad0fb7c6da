"""Programs over the two cards of the guest of tests/vm, with a daemon for each."""

import os

import job


class TwoCards(job.ProgramTest):
    def setUp(self):
        super().setUp()
        self.other = self.start_daemon("other", "--verbs_devices=rxb")


def main(about):
    """Runs the tests of the calling file."""
    os.environ["RNICD_TEST_DAEMON_FLAGS"] = "--provider=verbs --verbs_devices=rxa"
    job.main(about)
