#!/bin/sh
# node-boot.sh NODE-FOLDER BINARIES NAME: what a node does before its service manager starts. Runs as process 1 of its own
# mount, PID, UTS and IPC namespaces: the host's programs stay visible, and everything that a node writes is its own.
set -eu
node=$1 binaries=$2 name=$3
hostname "$name"
mount --bind "$binaries" /usr/local/bin
mount --bind "$node" /mnt
# Through /mnt, since the folders that are covered here may be the ones that the lab's own state is in.
for folder in etc var root; do mount --rbind "/mnt/$folder" "/$folder"; done
umount -l /mnt
for folder in run tmp; do mount -t tmpfs -o mode=0755 "$folder" "/$folder"; done
chmod 1777 /tmp
mkdir -p /run/lock /run/sshd /run/netns /run/containerd /var/tmp
chmod 1777 /var/tmp /run/lock
# The kubelet and containerd hand mounts on to containers; as under systemd everything is shared.
mount --make-rshared /
[ -e /usr/bin/systemctl ] && mount --bind /usr/local/bin/systemctl /usr/bin/systemctl
exec /usr/local/bin/systemctl
