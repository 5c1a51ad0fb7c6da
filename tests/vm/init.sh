#!/bin/busybox sh
# shellcheck shell=dash
# /init of the guest: loads the modules, mounts the host's files and the usual Linux file systems, and executes
# inside.sh in the host's root with the host's tools. If it fails, the kernel panics and the guest ends.
set -e
export PATH=/bin
/bin/busybox --install -s /bin

mount -t devtmpfs devtmpfs /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
# From here on all kernel messages go to the log at once.
dmesg -n 8
while read -r module; do insmod "/modules/$module"; done </modules/order

# The rig's folder on the host: the command, its folder, and the file for its exit status.
p9=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "$p9,cache=none" control /control
# The host does not change these files during a run, so the guest may cache them.
mount -t 9p -o "$p9,cache=loose,ro" host /host
repository=$(cat /control/repository)

umount /sys /proc
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t cgroup2 cgroup2 /host/sys/fs/cgroup
mount --move /dev /host/dev
mkdir -p /dev /host/dev/pts /host/dev/shm /host/dev/hugepages
mount -t devpts -o mode=620,ptmxmode=666 devpts /host/dev/pts
mount -t tmpfs -o mode=1777 tmpfs /host/dev/shm
mount -t hugetlbfs -o mode=1777 hugetlbfs /host/dev/hugepages

# Scratch space hides the host's folders of the same names, except the repository.
mkdir /repository
mount --bind "/host$repository" /repository
for folder in tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "/host/$folder"; done
mount -t tmpfs -o mode=755 tmpfs /host/run
mount -t tmpfs -o mode=700 tmpfs /host/root
if [ -d "/host$repository/tests" ]; then
  umount /repository
else
  mkdir -p "/host$repository"
  mount --move /repository "/host$repository"
fi

mkdir /host/run/rnicd-vm
mount --move /control /host/run/rnicd-vm
number=0
while read -r folder; do
  mkdir -p "/host$folder"
  mount -t 9p -o "$p9,cache=mmap" "share$number" "/host$folder"
  number=$((number + 1))
done </host/run/rnicd-vm/shares

exec switch_root /host /bin/bash "$repository/tests/vm/inside.sh"
