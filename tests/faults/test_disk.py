"""Disks that are full, read-only or go away: one sentence, nothing half done, and then it goes on.

The disks are small tmpfs. Mounting them takes root; for anybody else one test does all of this in a
namespace in which they are.
"""

import os
import re
import subprocess
import sys
import threading
import time

import pytest

from kohort.flows.cli import main

INSIDE = "KOHORT_FAULT_NAMESPACE"
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
SENTENCE = re.compile(r"kohort: [^\n]+\n?")
STAGE = re.compile(r"(?!kohort: )[a-z_]+( \w+)?(, block \d+)?: ")
BEGUN = "the run is not in `kohort runs`"  # the journal's own remark; the run goes on
ENOUGH = 64 << 20


def works(command):
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def can_mount(folder):
    if not works(["mount", "-t", "tmpfs", "-o", "size=64k", "kohort", str(folder)]):
        return False
    return works(["umount", str(folder)])


@pytest.fixture(scope="module")
def mounting(tmp_path_factory):
    """Skip where we cannot mount."""
    if not can_mount(tmp_path_factory.mktemp("try")):
        if INSIDE not in os.environ and works([*NAMESPACE, "true"]):
            pytest.skip("needs root; done by test_all_of_this_in_a_namespace")
        pytest.skip("neither root nor `unshare --user --mount` can mount a tmpfs here")


def test_all_of_this_in_a_namespace(tmp_path):
    if INSIDE in os.environ or can_mount(tmp_path):
        pytest.skip("tmpfs can be mounted without a namespace")
    if not works([*NAMESPACE, "true"]):
        pytest.skip("neither root nor `unshare --user --mount` can mount a tmpfs here")
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    done = subprocess.run(
        [*NAMESPACE, *pytest_here],
        env={**environment, INSIDE: "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


class Disk:
    """A tmpfs on a folder."""

    def __init__(self, folder):
        self.folder = folder

    def mount(self, size, *options):
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = ",".join([f"size={size}", "mode=700", *options])
        self._do("mount", "-t", "tmpfs", "-o", flags, "kohort", str(self.folder))

    def change(self, *options):
        self._do("mount", "-o", ",".join(["remount", *options]), str(self.folder))

    def leave(self):
        """Taken away under who uses it."""
        self._do("umount", "--lazy", str(self.folder))

    def bind(self, source):
        """What was on `source` is here."""
        self._do("mount", "--bind", str(source), str(self.folder))

    def end(self):
        while self.folder.is_mount() and works(["umount", "--lazy", str(self.folder)]):
            pass

    def _do(self, *command):
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk_on():
    made = []

    def disk_on(folder):
        made.append(Disk(folder))
        return made[-1]

    yield disk_on
    for disk in reversed(made):
        disk.end()


@pytest.fixture
def protect(survey, prefect_url, capfd, monkeypatch):
    """`kohort protect` within this process: exit code and standard error."""

    def protect(site, home=None):
        monkeypatch.setenv("PREFECT_API_URL", prefect_url)
        monkeypatch.setenv("KOHORT_HOME", str(home or site.home))
        capfd.readouterr()
        code = main(site.command(survey))
        return code, capfd.readouterr().err

    return protect


def one_sentence(code, said, *, about):
    """What is wrong with the end of a run that could not go on."""
    told = [line for line in said.splitlines() if not STAGE.match(line) and BEGUN not in line]
    wrong = [] if code == 1 else [f"exit {code}"]
    if len(told) != 1 or not SENTENCE.fullmatch(told[0]) or not re.search(about, told[0]):
        wrong.append(f"said: {said}")
    return wrong


def nothing_visible(site, survey):
    """What is wrong with what the failed run left."""
    seen = [path.name for path in site.out.glob("[!.]*")]
    return site.wrong_now(survey) + seen


SIZES = {"far too small": (16, 200), "too small": (200, 900), "nearly enough": (900, 1900)}  # of kB


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("size", SIZES)
def test_full_store(size, survey, new_site, disk_on, protect, rng, tally):
    site = new_site()
    disk = disk_on(site.store)
    disk.mount(f"{rng.randint(*SIZES[size])}k")
    code, said = protect(site)
    wrong = nothing_visible(site, survey) if code else site.wrong_now(survey)
    if code or size != "nearly enough":
        wrong += one_sentence(code, said, about=f"the disk of the store {site.store} is full; free")
    kept = len(list(site.store.glob("objects/*/*")))
    disk.change(f"size={ENOUGH}")
    again, said = protect(site)
    lost = [] if said.count(": cached") >= min(kept, 1) else ["everything"]
    right = again == 0 and site.protected() == survey.expected
    wrong += site.wrong_now(survey) + site.left_over()
    fault = "disk of the store full" if code else "disk of the store just large enough"
    tally(fault, lost=lost, wrong=wrong, recovered=right)


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("fits", ["nothing", "the file without its papers"])
def test_full_output_folder(fits, survey, new_site, disk_on, protect, rng, tally):
    site = new_site()
    disk = disk_on(site.out)
    whole = len(survey.expected) // 1024
    disk.mount(f"{rng.randint(4, whole - 8) if fits == 'nothing' else whole + 8}k")
    code, said = protect(site)
    about = f"the disk of the output folder {site.out} is full; free"
    wrong = one_sentence(code, said, about=about) + nothing_visible(site, survey)
    disk.change(f"size={ENOUGH}")
    again, said = protect(site)
    lost = [] if said.count(": cached") >= 15 else [said]
    right = again == 0 and site.protected() == survey.expected
    wrong += site.wrong_now(survey) + site.left_over()
    tally("disk of the output folder full", lost=lost, wrong=wrong, recovered=right)


@pytest.mark.usefixtures("mounting")
def test_full_home(survey, new_site, disk_on, rng, tally):
    """Prefect's database and the journals are there; the server is the command's own."""
    site = new_site(embedded=True)
    disk = disk_on(site.home)
    disk.mount(f"{rng.randint(16, 700)}k")
    done = site.run(*site.command(survey))
    about = f"the disk of the state folder {site.home} is full"
    wrong = one_sentence(done.returncode, done.stderr, about=about) + nothing_visible(site, survey)
    disk.change(f"size={ENOUGH}")
    again = site.run(*site.command(survey))
    right = again.returncode == 0 and site.protected() == survey.expected
    wrong += site.wrong_now(survey) + site.left_over()
    tally("disk of KOHORT_HOME full", wrong=wrong, recovered=right)


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("which", ["store", "out", "home"])
def test_read_only(which, survey, new_site, disk_on, tally):
    site = new_site(embedded=which == "home")
    folder = getattr(site, which)
    disk = disk_on(folder)
    disk.mount(ENOUGH, "ro")
    done = site.run(*site.command(survey))
    told = [line for line in done.stderr.splitlines() if not STAGE.match(line) and BEGUN not in line]
    wrong = [] if done.returncode in (1, 2) else [f"exit {done.returncode}"]
    if len(told) != 1 or str(folder) not in told[0] or not told[0].startswith("kohort: "):
        wrong.append(f"said: {done.stderr}")
    wrong += nothing_visible(site, survey)
    disk.change("rw")
    again = site.run(*site.command(survey))
    right = again.returncode == 0 and site.protected() == survey.expected
    wrong += site.wrong_now(survey) + site.left_over()
    tally("read-only folder", wrong=wrong, recovered=right)


class Unplugged(threading.Thread):
    """Takes a disk away when the run has written so much to it, and puts it back after a while."""

    def __init__(self, disk, enough, back):
        super().__init__(daemon=True)
        self.disk, self.enough, self.back = disk, enough, back
        self.keeper = disk.folder.with_name("keeper")
        self.keeper.mkdir()
        Disk(self.keeper).bind(disk.folder)
        self.stop = False

    def run(self):
        while not self.enough() and not self.stop:
            time.sleep(0.002)
        self.disk.leave()
        if self.back is not None:
            time.sleep(self.back)
            self.replug()

    def replug(self):
        self.disk.bind(self.keeper)


@pytest.fixture
def unplug(disk_on):
    """Unplug a site's store in the middle of a run."""
    made = []

    def unplug(site, *, back):
        disk = disk_on(site.store)
        disk.mount(ENOUGH)
        disk_on(site.store.with_name("keeper"))
        count = lambda: len(list((site.store / "objects").glob("*/*"))) >= 6  # noqa: E731
        made.append(Unplugged(disk, count, back))
        made[-1].start()
        return made[-1]

    yield unplug
    for each in made:
        each.stop = True
        each.join(30)


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("back", [None, 0.5], ids=["stays away", "comes back"])
def test_a_store_that_vanishes(back, survey, new_site, protect, unplug, tally):
    site = new_site()
    plug = unplug(site, back=back)
    code, said = protect(site)
    plug.join(30)
    wrong = []
    if back is None:
        wrong += one_sentence(code, said, about="store") + nothing_visible(site, survey)
        wrong += [f"written below the mount: {path}" for path in site.store.iterdir()]
        plug.replug()
    elif code:
        wrong += one_sentence(code, said, about="store") + nothing_visible(site, survey)
    kept = len(list(site.store.glob("objects/*/*")))
    again, said = protect(site)
    lost = [] if kept >= 6 and said.count(": cached") >= 3 else [said]
    right = again == 0 and site.protected() == survey.expected
    wrong += site.wrong_now(survey) + site.left_over()
    how = "and stays away" if back is None else "and comes back"
    tally(f"mount of the store vanishes {how}", lost=lost, wrong=wrong, recovered=right)
