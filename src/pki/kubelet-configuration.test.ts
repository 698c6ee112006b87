import { expect, test } from 'vitest'
import { readKubeletConfiguration, withKubeletFlags } from './kubelet-configuration.ts'

const config = '/var/lib/kubelet/config.yaml'

const kubeadms = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
cgroupDriver: systemd
kind: KubeletConfiguration
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`

test("reads the client CA and the certificate rotation from kubeadm's file", async () => {
  expect(await readKubeletConfiguration(kubeadms, config)).toEqual({
    clientCaFile: '/etc/kubernetes/pki/ca.crt',
    rotateCertificates: true,
    staticPodPath: '/etc/kubernetes/manifests',
    featureGates: {},
  })
})

test('reads cipher suites and the TLS version, and a flag takes precedence', async () => {
  const text = `kind: KubeletConfiguration
tlsCipherSuites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
tlsMinVersion: VersionTLS12
`
  const read = await readKubeletConfiguration(text, config)
  const tlsCipherSuites = 'TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'
  expect(read).toMatchObject({ tlsCipherSuites, tlsMinVersion: 'VersionTLS12' })
  const flags = { 'tls-cipher-suites': 'A', 'tls-min-version': 'VersionTLS13' }
  expect(withKubeletFlags(read, flags)).toMatchObject({ tlsCipherSuites: 'A', tlsMinVersion: 'VersionTLS13' })
  const odd = await readKubeletConfiguration('kind: KubeletConfiguration\ntlsCipherSuites: {a: b}\n', config)
  expect(odd.tlsCipherSuites).toBeUndefined()
})

test('rejects another kind and text that is not YAML', async () => {
  for (const text of ['kind: KubeProxyConfiguration\n', 'kind: [', '']) {
    await expect(readKubeletConfiguration(text, config)).rejects.toMatchObject({
      code: 'KCERT_MANIFEST_MALFORMED',
    })
  }
})

test('a flag of the kubelet takes precedence over the file; other settings stay', async () => {
  const configured = await readKubeletConfiguration(
    `kind: KubeletConfiguration
authentication: {x509: {clientCAFile: /file/ca.crt}}
serverTLSBootstrap: true
rotateCertificates: false
tlsCertFile: /file/tls.crt
tlsPrivateKeyFile: /file/tls.key
staticPodPath: /file/manifests
`,
    config,
  )
  const flags = {
    'client-ca-file': '/flag/ca.crt',
    'rotate-server-certificates': 'false',
    'rotate-certificates': 'T',
    'tls-cert-file': '/flag/tls.crt',
    'tls-private-key-file': '/flag/tls.key',
    'pod-manifest-path': '/flag/manifests',
  }
  expect(withKubeletFlags(configured, flags)).toMatchObject({
    clientCaFile: '/flag/ca.crt',
    serverTlsBootstrap: false,
    rotateCertificates: true,
    tlsCertFile: '/flag/tls.crt',
    tlsPrivateKeyFile: '/flag/tls.key',
    staticPodPath: '/flag/manifests',
  })
  expect(withKubeletFlags(configured, {})).toEqual(configured)
})

test('paths in the file are relative to its folder; the addresses are not paths, and an empty path is none', async () => {
  const text = `kind: KubeletConfiguration
authentication: {x509: {clientCAFile: pki/ca.crt}}
tlsCertFile: ../tls.crt
tlsPrivateKeyFile: ""
staticPodPath: manifests
address: 0.0.0.0
healthzBindAddress: 127.0.0.1
`
  expect(await readKubeletConfiguration(text, config)).toMatchObject({
    clientCaFile: '/var/lib/kubelet/pki/ca.crt',
    tlsCertFile: '/var/lib/tls.crt',
    tlsPrivateKeyFile: undefined,
    staticPodPath: '/var/lib/kubelet/manifests',
    address: '0.0.0.0',
    healthzBindAddress: '127.0.0.1',
  })
})

test('drop-ins take precedence in order, and feature gates add up', async () => {
  const dropIn = (path: string, ...lines: string[]) => {
    const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
    return { path, text: `${head}${lines.join('\n')}\n` }
  }
  const first = dropIn(
    '/d/10.conf',
    'authentication: {x509: {clientCAFile: /first/ca.crt}}',
    'serverTLSBootstrap: true',
    'tlsCertFile: pki/tls.crt',
    'featureGates: {A: true, B: true}',
  )
  const second = dropIn('/d/20.conf', 'serverTLSBootstrap: false', 'featureGates: {B: false}')
  expect(await readKubeletConfiguration(kubeadms, config, [first, second])).toEqual({
    clientCaFile: '/first/ca.crt',
    rotateCertificates: true,
    serverTlsBootstrap: false,
    staticPodPath: '/etc/kubernetes/manifests',
    // Relative to the folder of the process, not to that of the file.
    tlsCertFile: '/pki/tls.crt',
    featureGates: { A: true, B: false },
  })
  const malformed = { path: '/d/30.conf', text: 'kind: Pod\n' }
  await expect(readKubeletConfiguration(kubeadms, config, [first, malformed])).rejects.toMatchObject({
    code: 'KCERT_MANIFEST_MALFORMED',
    why: '/d/30.conf: its kind is not KubeletConfiguration. The kubelet merges this file (--config-dir)',
  })
  // A kubelet without --config has only drop-ins.
  const alone = dropIn('/d/40.conf', 'tlsCertFile: pki/tls.crt', 'featureGates: {B: false}')
  expect(await readKubeletConfiguration(undefined, config, [second, alone])).toEqual({
    serverTlsBootstrap: false,
    tlsCertFile: '/pki/tls.crt',
    featureGates: { B: false },
  })
})

test.each([
  [
    'an empty text',
    "{tlsCertFile: '', tlsMinVersion: '', address: ''}",
    { tlsPrivateKeyFile: '/a/tls.key', port: 1 },
  ],
  [
    'null',
    '{tlsCertFile: null, tlsPrivateKeyFile: ~, authentication: null, featureGates: {A: null}}',
    {
      ...{ tlsMinVersion: 'VersionTLS13', address: '192.0.2.1', port: 1, clientCaFile: undefined },
      featureGates: { B: true },
    },
  ],
  [
    'an empty list or map, and port 0',
    '{tlsCipherSuites: [], featureGates: {}, authentication: {x509: {}}, port: 0}',
    {
      ...{ tlsCipherSuites: undefined, clientCaFile: '/a/ca.crt', port: undefined },
      featureGates: { A: true, B: true },
    },
  ],
] as const)('%s in a drop-in: merges it as the kubelet does', async (_what, text, expected) => {
  const base = `kind: KubeletConfiguration
authentication: {x509: {clientCAFile: ca.crt}}
tlsCertFile: tls.crt
tlsPrivateKeyFile: tls.key
tlsCipherSuites: [A, B]
tlsMinVersion: VersionTLS13
address: 192.0.2.1
port: 1
featureGates: {A: true, B: true}
`
  const kind = 'kind: KubeletConfiguration, apiVersion: kubelet.config.k8s.io/v1beta1'
  const dropIn = { path: '/d/1.conf', text: `{${kind}, ${text.slice(1)}` }
  expect(await readKubeletConfiguration(base, '/a/config.yaml', [dropIn])).toMatchObject({
    ...expected,
    ...(text.includes('tlsCertFile') && { tlsCertFile: undefined }),
  })
})
