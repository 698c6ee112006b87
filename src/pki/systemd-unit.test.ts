import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flagsOf } from './component-flags.ts'
import { editUnit, environmentFiles, readEnvironment, type UnitFile, unitCommands } from './systemd-unit.ts'
import { systemdWord, systemdWords } from './systemd-words.ts'
import '../../test/seeded.ts'

const kubelet: UnitFile = {
  path: '/usr/lib/systemd/system/kubelet.service',
  text: '[Unit]\nDescription=kubelet: The Kubernetes Node Agent\n\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
}

// The drop-in from kubeadm's packages.
const dropIn: UnitFile = {
  path: '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf',
  text: `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
}

const kubeadmFlags =
  'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock --node-ip=10.0.0.1"\n'

// As in installations without kubeadm.
const controllerManager = `[Unit]
Description=Kubernetes Controller Manager
After=network.target

[Service]
ExecStart=/usr/local/bin/kube-controller-manager \\
      --v=2 \\
      --root-ca-file=/etc/kubernetes/pki/ca.pem \\
      # the signer
      --cluster-signing-cert-file=/etc/kubernetes/pki/ca.pem \\
      --kubeconfig=/etc/kubernetes/controller-manager.kubeconfig \\
      --leader-elect=true

Restart=always
RestartSec=10s
`

describe('unitCommands', () => {
  test("returns the flags of kubeadm's kubelet from drop-in, environment and environment file", () => {
    expect(environmentFiles([kubelet, dropIn])).toEqual([
      '/var/lib/kubelet/kubeadm-flags.env',
      '/etc/default/kubelet',
    ])
    const environment = new Map([['/var/lib/kubelet/kubeadm-flags.env', kubeadmFlags]])
    const commands = unitCommands([kubelet, dropIn], environment)
    expect(commands).toHaveLength(1)
    expect(commands[0]!.path).toBe(dropIn.path)
    expect(flagsOf(commands[0]!.argv)).toEqual({
      'bootstrap-kubeconfig': '/etc/kubernetes/bootstrap-kubelet.conf',
      kubeconfig: '/etc/kubernetes/kubelet.conf',
      config: '/var/lib/kubelet/config.yaml',
      'container-runtime-endpoint': 'unix:///run/containerd/containerd.sock',
      'node-ip': '10.0.0.1',
    })
  })

  test('returns the flags of a 1.36 kubelet, whose kubeadm-flags.env is empty', () => {
    const environment = new Map([['/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS=""\n']])
    expect(flagsOf(unitCommands([kubelet, dropIn], environment)[0]!.argv)).toEqual({
      'bootstrap-kubeconfig': '/etc/kubernetes/bootstrap-kubelet.conf',
      kubeconfig: '/etc/kubernetes/kubelet.conf',
      config: '/var/lib/kubelet/config.yaml',
    })
  })

  test('joins continued lines and ignores comments between them', () => {
    const [command] = unitCommands([{ path: 'u', text: controllerManager }])
    expect(command!.argv).toHaveLength(6)
    expect(flagsOf(command!.argv)).toMatchObject({ 'leader-elect': 'true', v: '2' })
  })

  test('reads quotes, escapes, prefixes, variables, $$ and %% as systemd does', () => {
    const text = `[Service]\nEnvironment=A=1 "B=two words"\nExecStart=-@/bin/x '--q=a b' --e=a\\x20b --$\{A}=\${B} $B 100%% $$A\n`
    expect(unitCommands([{ path: 'u', text }])[0]!.argv).toEqual([
      ...['/bin/x', '--q=a b', '--e=a b', '--1=two words', 'two', 'words', '100%', '$A'],
    ])
  })
})

describe('editUnit', () => {
  const edit = (flags: Record<string, string | null>): string =>
    editUnit(controllerManager, 'kube-controller-manager', flags)

  test('changes only one flag', () => {
    expect(edit({ 'root-ca-file': '/etc/kubernetes/ssl/bundle.pem' })).toBe(
      controllerManager.replace(
        '--root-ca-file=/etc/kubernetes/pki/ca.pem',
        '--root-ca-file=/etc/kubernetes/ssl/bundle.pem',
      ),
    )
  })

  test('adds a new flag on its own line, like the others', () => {
    expect(edit({ 'client-ca-file': '/ca.pem' })).toBe(
      controllerManager.replace('elect=true', 'elect=true \\\n      --client-ca-file=/ca.pem'),
    )
  })

  test('removes a flag with its line, also the last one, and keeps a comment', () => {
    expect(edit({ v: null })).toBe(controllerManager.replace('      --v=2 \\\n', ''))
    expect(edit({ 'leader-elect': null })).toBe(
      controllerManager.replace(' \\\n      --leader-elect=true', ''),
    )
    expect(edit({ 'cluster-signing-cert-file': null })).toBe(
      controllerManager.replace('      --cluster-signing-cert-file=/etc/kubernetes/pki/ca.pem \\\n', ''),
    )
  })

  test('rejects a unit that starts another program', () => {
    expect(() => editUnit(controllerManager, 'kubelet', {})).toThrow('does not start kubelet')
  })

  test('sets and removes any flags and keeps the rest of the file', () => {
    const name = fc.constantFrom('v', 'root-ca-file', 'leader-elect', 'new-one', 'cluster-signing-cert-file')
    const value = fc.option(
      fc.oneof(fc.constantFrom('a b', '100%', '$x', '"', "it's", '\\', 'a;b'), fc.string()),
      {
        nil: null,
      },
    )
    fc.assert(
      fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (flags) => {
        fc.pre(Object.values(flags).every((to) => to === null || !/[\0\r\n]/.test(to)))
        const edited = edit(flags)
        const before = flagsOf(unitCommands([{ path: 'u', text: controllerManager }])[0]!.argv)
        const after = flagsOf(unitCommands([{ path: 'u', text: edited }])[0]!.argv)
        const wanted = Object.entries({ ...before, ...flags }).filter(([, to]) => to !== null)
        expect(after).toEqual(Object.fromEntries(wanted))
        expect(edited.split('ExecStart=')[0]).toBe(controllerManager.split('ExecStart=')[0])
        expect(edited.split('\nRestart=')[1]).toBe(controllerManager.split('\nRestart=')[1])
        expect(edited).toContain('      # the signer\n')
      }),
      { numRuns: 1000 },
    )
  })

  test('reads any word as it was written', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (texts) => {
        fc.pre(texts.every((text) => !/[\0\r]/.test(text)))
        const line = `[Service]\nExecStart=/x ${texts.map(systemdWord).join(' ')}\n`
        expect(unitCommands([{ path: 'u', text: line }])[0]!.argv.slice(1)).toEqual(texts)
      }),
      { numRuns: 1000 },
    )
  })

  test('keeps an unknown escape and an unclosed quote', () => {
    const words = `a\\qb "open`
    expect(systemdWords(words, 0, words.length).map(({ text }) => text)).toEqual(['a\\qb', 'open'])
  })
})

describe('readEnvironment', () => {
  test('reads comments, quotes and continued lines', () => {
    const text = `# c\n; c\nA=1\n B = "two  words" \nexport C='x'\nD=a\\\n b\nnonsense\nE=\n`
    expect(readEnvironment(text).map(({ name, value }) => [name, value])).toEqual([
      ['A', '1'],
      ['B', 'two  words'],
      ['C', 'x'],
      ['D', 'a b'],
      ['E', ''],
    ])
  })
})
