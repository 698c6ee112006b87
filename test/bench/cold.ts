import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { certificateFolder } from './certificates.ts'
import type { Contender } from './measure.ts'
import { peer } from './peers.ts'
import type { Suite } from './suite.ts'

// Built by `npm run dist`, which the benchmark runs first where possible.
const executable = 'release/kcert-linux-x64'

/** One certificate, one process, only the page cache warm: what an operator experiences. */
export function coldSuite(folder: string): Suite {
  const { leaf } = certificateFolder(join(folder, 'one'), 1)
  const pki = kubeadmPki(folder)
  const kubeadm = peer('kubeadm')
  const contenders: Contender[] = [
    { name: 'node -e 0', command: [process.execPath, '-e', '0'] },
    { name: 'kcert inspect FILE', command: [process.execPath, 'bin/run.js', 'inspect', leaf], exits: [0, 3] },
    { name: 'kcert --help', command: [process.execPath, 'bin/run.js', '--help'] },
    {
      name: 'kcert inspect kubelet.kubeconfig',
      command: [process.execPath, 'bin/run.js', 'inspect', 'examples/kubelet.kubeconfig'],
      exits: [0, 3],
    },
    ...(existsSync(executable)
      ? [
          {
            name: 'single executable: kcert inspect FILE',
            command: [resolve(executable), 'inspect', leaf],
            exits: [0, 3],
          },
          { name: 'single executable: kcert --help', command: [resolve(executable), '--help'] },
        ]
      : []),
    { name: 'openssl x509 -text', command: ['openssl', 'x509', '-in', leaf, '-noout', '-text'] },
    ...present('cfssl', 'cfssl certinfo', ['certinfo', '-cert', leaf]),
    ...present('step', 'step certificate inspect', ['certificate', 'inspect', leaf]),
    ...present('kubectl', 'kubectl version --client', ['version', '--client']),
    ...(kubeadm && pki
      ? [
          {
            name: 'kcert inspect PKI folder',
            command: [process.execPath, 'bin/run.js', 'inspect', pki],
            exits: [0, 3],
          },
          {
            name: 'kubeadm certs check-expiration',
            command: [
              kubeadm,
              'certs',
              'check-expiration',
              '--cert-dir',
              pki,
              '--config',
              join(folder, 'kubeadm.yaml'),
            ],
          },
        ]
      : []),
  ]
  return {
    title: 'Cold start: one process reads one certificate',
    baseline: 'node -e 0',
    targets: {
      'kcert inspect FILE': 1.7,
      'kcert --help': 1.7,
      'single executable: kcert inspect FILE': 2.4,
      'single executable: kcert --help': 2.4,
    },
    contenders,
    runs: { warmup: 5, min: 40 },
  }
}

function present(program: string, name: string, args: readonly string[]): Contender[] {
  const path = peer(program)
  return path ? [{ name, command: [path, ...args] }] : []
}

function kubeadmPki(folder: string): string | undefined {
  const kubeadm = peer('kubeadm')
  if (!kubeadm) return undefined
  const pki = mkdtempSync(join(folder, 'pki-'))
  const config = join(folder, 'kubeadm.yaml')
  writeFileSync(
    config,
    `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 192.0.2.10}\nnodeRegistration: {name: cp1}\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\ncertificatesDir: ${pki}\n`,
  )
  const { status } = spawnSync(kubeadm, ['init', 'phase', 'certs', 'all', '--config', config], {
    stdio: 'ignore',
  })
  return status === 0 ? pki : undefined
}
