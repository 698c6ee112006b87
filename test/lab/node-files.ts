import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from './command.ts'
import { isNode, type Machine, type Minor, network, releases } from './spec.ts'
import { paths } from './state.ts'

/** The parts of the host's /etc that a node shares: nothing secret, and nothing that identifies the host. */
const fromHost = ['alternatives', 'ca-certificates.conf', 'group', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime',
  'nsswitch.conf', 'passwd', 'protocols', 'services', 'ssl/openssl.cnf', 'ethertypes', 'ssh/moduli'] // biome-ignore format: a list of names

/** Writes the files of a new node into its folder: /etc with units, containerd, CNI and sshd, and an empty /var. */
export async function writeNodeFiles(node: Machine, all: readonly Machine[], minor: Minor): Promise<void> {
  const folder = paths.node(node.name)
  for (const name of fromHost) {
    const source = join('/etc', name)
    if (existsSync(source))
      cpSync(source, join(folder, 'etc', name), { recursive: true, verbatimSymlinks: true })
  }
  for (const [name, content] of Object.entries({
    ...hostFiles(node, all),
    ...units(),
    ...runtimeFiles(node, minor),
  })) {
    writeAt(folder, name, content)
  }
  for (const name of ['cache', 'lib/kubelet', 'lib/etcd', 'log/pods', 'log/containers', 'empty', 'spool']) {
    mkdirSync(join(folder, 'var', name), { recursive: true })
  }
  symlinkSync('/run', join(folder, 'var/run'))
  for (const unit of isNode(node) ? ['containerd', 'ssh', 'kubelet'] : ['ssh']) enableUnit(folder, unit)
  await writeSshKeys(folder)
}

/** Enables a unit, so that it starts at each boot of the node. */
export function enableUnit(folder: string, unit: string): void {
  const wants = join(folder, 'etc/systemd/system/multi-user.target.wants')
  mkdirSync(wants, { recursive: true })
  const link = join(wants, `${unit}.service`)
  rmSync(link, { force: true })
  symlinkSync(`/etc/systemd/system/${unit}.service`, link)
}

export function writeAt(folder: string, name: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), content, { mode })
}

function hostFiles(node: Machine, all: readonly Machine[]): Record<string, string> {
  const hosts = all.map(({ address, name }) => `${address} ${name}`)
  return {
    'etc/hostname': `${node.name}\n`,
    'etc/hosts': ['127.0.0.1 localhost', `${network.loadBalancer} lab-api`, ...hosts, ''].join('\n'),
    // No DNS server responds there: the lab has no names outside the cluster.
    'etc/resolv.conf': `nameserver ${network.gateway}\n`,
    'etc/machine-id': `${randomBytes(16).toString('hex')}\n`,
    'etc/shadow': 'root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n',
    'root/.bashrc': `export PS1='${node.name}# ' KUBECONFIG=/etc/kubernetes/admin.conf\n`,
  }
}

/** Units as in the packages of Debian and kubeadm, limited to the directives that the lab's service manager reads. */
function units(): Record<string, string> {
  const service = (name: string, lines: readonly string[]): Record<string, string> => ({
    [`etc/systemd/system/${name}.service`]: `[Unit]\nDescription=${name}\n\n[Service]\n${lines.join('\n')}\n\n[Install]\nWantedBy=multi-user.target\n`,
  })
  return {
    ...service('containerd', [
      'ExecStart=/usr/bin/containerd',
      'Restart=always',
      'RestartSec=1',
      'KillMode=process',
    ]),
    ...service('ssh', ['ExecStart=/usr/sbin/sshd -D -e', 'Restart=on-failure', 'KillMode=process']),
    ...service('kubelet', [
      'ExecStart=/usr/local/bin/kubelet',
      'Restart=always',
      'RestartSec=1',
      'KillMode=process',
      'ConditionPathExists=/var/lib/kubelet/config.yaml',
    ]),
    'etc/systemd/system/kubelet.service.d/10-kubeadm.conf': `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
  }
}

function runtimeFiles(node: Machine, minor: Minor): Record<string, string> {
  // ptp, not bridge: a reply from a pod on the same node then passes the node's routing, which translates the connection to a
  // Service address back.
  const cni = {
    cniVersion: '1.0.0',
    name: 'lab',
    plugins: [
      {
        type: 'ptp',
        ipMasq: false,
        ipam: {
          type: 'host-local',
          dataDir: '/run/cni-addresses',
          ranges: [[{ subnet: node.podSubnet }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  }
  return {
    'etc/cni/net.d/10-lab.conflist': `${JSON.stringify(cni, null, 2)}\n`,
    'etc/containerd/config.toml': `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:${releases[minor].pause}"
  # A sandbox may lack CAP_SYS_RESOURCE, and runc then cannot lower a score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
`,
  }
}

/** Writes an sshd configuration with the node's own host key, which accepts only the lab's key. */
async function writeSshKeys(folder: string): Promise<void> {
  const ssh = join(folder, 'etc/ssh')
  mkdirSync(ssh, { recursive: true })
  await run([
    'ssh-keygen',
    '-q',
    '-t',
    'ed25519',
    '-N',
    '',
    '-C',
    'lab',
    '-f',
    join(ssh, 'ssh_host_ed25519_key'),
  ])
  const config = ['HostKey /etc/ssh/ssh_host_ed25519_key', 'UsePAM no', 'PasswordAuthentication no', 'PermitRootLogin prohibit-password',
    'UseDNS no', 'Subsystem sftp internal-sftp', 'MaxSessions 64', 'MaxStartups 64', 'AcceptEnv LANG'] // biome-ignore format: a list
  writeAt(folder, 'etc/ssh/sshd_config', `${config.join('\n')}\n`)
  const home = join(folder, 'root')
  chmodSync(home, 0o700)
  mkdirSync(join(home, '.ssh'), { mode: 0o700 })
  writeAt(folder, 'root/.ssh/authorized_keys', readFileSync(join(paths.ssh, 'id_ed25519.pub'), 'utf8'), 0o600)
}

/** Writes the lab's key pair and an ssh configuration for `ssh -F … cp1`, with the nodes' host keys. */
export async function writeSshClient(nodes: readonly Machine[]): Promise<void> {
  mkdirSync(paths.ssh, { recursive: true, mode: 0o700 })
  const key = join(paths.ssh, 'id_ed25519')
  if (!existsSync(key))
    await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'kcert-lab', '-f', key])
  const known = join(paths.ssh, 'known_hosts')
  const hostKeys = nodes.map(({ name, address }) => {
    const file = join(paths.node(name), 'etc/ssh/ssh_host_ed25519_key.pub')
    return existsSync(file)
      ? `${name},${address} ${readFileSync(file, 'utf8').split(' ').slice(0, 2).join(' ')}`
      : ''
  })
  writeFileSync(known, `${hostKeys.filter((line) => line !== '').join('\n')}\n`)
  const hosts = nodes.map(
    ({ name, address }) => `Host ${name} ${address}\n  HostName ${address}\n  HostKeyAlias ${name}\n`,
  )
  const common = `Host *\n  User root\n  IdentityFile ${key}\n  IdentitiesOnly yes\n  UserKnownHostsFile ${known}\n  StrictHostKeyChecking yes\n  BatchMode yes\n`
  writeFileSync(paths.sshConfig, [...hosts, common].join('\n'))
}
