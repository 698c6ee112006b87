import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { CertificateRequest } from '../x509/request.ts'
import { kubeadmRequests } from './kubeadm-requests.ts'
import { kubeadmDefaults, readKubeadmSettings } from './kubeadm-settings.ts'
import { makeRequest } from './request-spec.ts'

const settings = { ...kubeadmDefaults, nodeName: 'cp1', advertiseAddress: '10.0.0.11' }

test('signs with SHA-256 for an RSA key of any length, as kubeadm does', () => {
  const key = generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey
  const [{ spec }] = kubeadmRequests('admin.conf', settings) as [ReturnType<typeof kubeadmRequests>[number]]
  expect(CertificateRequest.parse(makeRequest(spec, key)).signatureAlgorithm).toBe('sha256WithRSAEncryption')
})

test.each([
  ['10.96.0.0/12', '10.96.0.1'],
  ['10.100.200.0/24,fd00::/108', '10.100.200.1'],
  ['10.96.7.9/12', '10.96.0.1'],
  ['fd00:100::/108', 'fd00:100::1'],
])('the API server gets the first address of the service subnet %s: %s', (serviceSubnet, address) => {
  const [request] = kubeadmRequests('apiserver', { ...settings, serviceSubnet })
  expect(request!.spec.altNames.ip).toEqual([address, '10.0.0.11'])
})

test.each([
  ['lb.example.com', 'https://lb.example.com:6443', { dns: 'lb.example.com' }],
  ['lb.example.com:443', 'https://lb.example.com:443', { dns: 'lb.example.com' }],
  ['192.0.2.9:443', 'https://192.0.2.9:443', { ip: '192.0.2.9' }],
  ['[fd00::9]:443', 'https://[fd00::9]:443', { ip: 'fd00::9' }],
  ['fd00::9', 'https://[fd00::9]:6443', { ip: 'fd00::9' }],
])(
  'with the endpoint %s, users connect to %s, and control plane components to the node',
  (controlPlaneEndpoint, server, name) => {
    const requests = kubeadmRequests('all', { ...settings, controlPlaneEndpoint })
    const servers = Object.fromEntries(
      requests.flatMap(({ file, kubeconfig }) => (kubeconfig ? [[file, kubeconfig.server]] : [])),
    )
    expect(servers).toEqual({
      'admin.conf': server,
      'super-admin.conf': server,
      'kubelet.conf': server,
      'controller-manager.conf': 'https://10.0.0.11:6443',
      'scheduler.conf': 'https://10.0.0.11:6443',
    })
    const { altNames } = requests.find(({ row }) => row === 'apiserver')!.spec
    for (const [kind, value] of Object.entries(name)) expect(altNames[kind as 'dns']).toContain(value)
  },
)

test('refuses an invalid name in certSANs, as kubeadm does', async () => {
  const text = 'kind: ClusterConfiguration\napiServer: {certSANs: ["not a name"]}\n'
  const configured = {
    ...(await readKubeadmSettings(text, 'x')),
    nodeName: 'cp1',
    advertiseAddress: '10.0.0.11',
  }
  expect(() => kubeadmRequests('apiserver', configured)).toThrow(/"not a name".*is not a name/)
})

test.each([
  [{ advertiseAddress: '0.0.0.0' }, 'clients cannot reach an API server at 0.0.0.0'],
  [{ advertiseAddress: '127.0.0.1' }, 'clients cannot reach an API server at 127.0.0.1'],
  [{ advertiseAddress: '::' }, 'clients cannot reach an API server at ::'],
  [{ advertiseAddress: '224.0.0.1' }, 'clients cannot reach an API server at 224.0.0.1'],
  [{ serviceSubnet: '10.96.0.0' }, 'is not a range of addresses'],
  [{ serviceSubnet: '10.96.0.0/32' }, 'has 1 addresses, and less than 10'],
  [{ serviceSubnet: '10.96.0.0/29' }, 'has 8 addresses, and less than 10'],
  [{ serviceSubnet: '10.0.0.0/11' }, 'is too large: its mask is /12 at least'],
  [{ serviceSubnet: '10.96.0.0/16,fd00::/64' }, 'is too large: its mask is /108 at least'],
  [{ controlPlaneEndpoint: 'foo:99999' }, 'is not HOST or HOST:PORT'],
  [{ controlPlaneEndpoint: 'foo:0' }, 'is not HOST or HOST:PORT'],
  [{ controlPlaneEndpoint: 'FOO:6443' }, 'is not HOST or HOST:PORT'],
])('refuses %j, which kubeadm refuses or replaces', (change, message) => {
  expect(() => kubeadmRequests('apiserver', { ...settings, ...change })).toThrow(message)
})

test('writes the node name in lower case, as kubeadm does', () => {
  const [{ spec }] = kubeadmRequests('etcd-server', { ...settings, nodeName: ' CP-1' }) as [
    ReturnType<typeof kubeadmRequests>[number],
  ]
  expect(spec.subject).toMatchObject({ commonName: 'cp-1' })
})

test.each(['Ed25519', 'ECDSA-P521', 'rsa-2048', 'RSA-2056'])(
  'refuses %s keys, which kubeadm does not create',
  async (algorithm) => {
    const text = `kind: ClusterConfiguration\nencryptionAlgorithm: ${algorithm}\n`
    await expect(readKubeadmSettings(text, 'x')).rejects.toThrow(
      `kubeadm does not support the key type "${algorithm}"`,
    )
  },
)

test('refuses ML-DSA keys, which kubeadm creates since 1.38', async () => {
  const text = 'kind: ClusterConfiguration\nencryptionAlgorithm: ML-DSA-65\nkubernetesVersion: v1.38.0\n'
  await expect(readKubeadmSettings(text, 'x')).rejects.toMatchObject({
    message: 'kcert does not create ML-DSA-65 keys',
    why: expect.stringContaining('kubeadm supports them since 1.38'),
  })
})

test.each([
  ['v1.32.13', false],
  ['stable-1.33', false],
  ['v1.34.0', true],
  ['v1.37.2', true],
  ['stable-1', true],
])('kubeadm %s creates ECDSA-P384 keys: %s', async (version, isMade) => {
  const text = `kind: ClusterConfiguration\nencryptionAlgorithm: ECDSA-P384\nkubernetesVersion: ${version}\n`
  const read = await readKubeadmSettings(text, 'x')
  const keyTypes = () =>
    kubeadmRequests('admin.conf', { ...settings, ...read }).map(({ spec }) => spec.keyType)
  if (isMade) expect(keyTypes()).toEqual([{ algorithm: 'ECDSA', curve: 'P-384' }])
  else expect(keyTypes).toThrow(/^kubeadm 1\.3[23] does not support the key type "ECDSA-P384"/)
})

test('reports fields that are unknown to kubeadm at any depth', async () => {
  const text = `kind: ClusterConfiguration
bogus: 1
apiServer: {certSans: [a], extraArgs: [{name: x, value: y}]}
---
kind: InitConfiguration
nodeRegistration: {name: cp1, bogus: 1}
`
  expect((await readKubeadmSettings(text, 'k.yaml')).notices).toEqual(
    ['"bogus"', '"apiServer.certSans"', '"nodeRegistration.bogus"'].map(
      (field) => `kubeadm does not know the field ${field} in "k.yaml"; check its spelling`,
    ),
  )
})

const kubeletClient = (kubernetesVersion?: string) => {
  const [request] = kubeadmRequests('apiserver-kubelet-client', {
    ...settings,
    ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
  })
  return request!.spec
}

test('the subject of apiserver-kubelet-client follows kubernetesVersion', async () => {
  const { kubernetesVersion } = await readKubeadmSettings(
    'kind: ClusterConfiguration\nkubernetesVersion: v1.30.2\n',
    'x',
  )
  expect(kubeletClient(kubernetesVersion)).toMatchObject({
    subject: { organization: ['kubeadm:cluster-admins'] },
    notices: [],
  })
  expect(kubeletClient('v1.37.0')).toMatchObject({ subject: { organization: [] } })
})

const bindingNotice =
  'apiserver-kubelet-client: without O, it needs the ClusterRoleBinding kubeadm:apiserver-kubelet-client, or logs and exec fail. kubeadm creates it in init and upgrade apply; in an existing cluster, first run: kubectl get clusterrolebinding kubeadm:apiserver-kubelet-client || kubectl create clusterrolebinding kubeadm:apiserver-kubelet-client --clusterrole system:kubelet-api-admin --user kube-apiserver-kubelet-client'

test('says that apiserver-kubelet-client without O needs a ClusterRoleBinding', () => {
  expect(kubeletClient('v1.36.0').notices).toEqual([])
  expect(kubeletClient('v1.36.1').notices).toEqual([bindingNotice])
  const all = kubeadmRequests('all', { ...settings, kubernetesVersion: 'v1.37.2' })
  expect(all.flatMap(({ spec }) => spec.notices)).toEqual([bindingNotice])
})

test('reads the experimental v1 of the API of kubeadm, and says that kubeadm rejects it', async () => {
  const read = (version: string) =>
    readKubeadmSettings(
      `apiVersion: ${version}\nkind: ClusterConfiguration\nclusterName: prod\napiServer: {extraArgs: [{name: a, value: b, mergeMethod: append}]}\n`,
      'k.yaml',
    )
  for (const version of ['v1beta3', 'v1beta4'])
    expect(await read(`kubeadm.k8s.io/${version}`)).toMatchObject({ clusterName: 'prod', notices: [] })
  expect(await read('kubeadm.k8s.io/v1')).toMatchObject({
    clusterName: 'prod',
    notices: [
      'kubeadm.k8s.io/v1 in "k.yaml" is experimental: kubeadm 1.37 rejects this file; use kubeadm.k8s.io/v1beta4',
    ],
  })
  for (const version of ['kubeadm.k8s.io/v1beta2', 'kubeadm.k8s.io/v2', 'example.com/v1'])
    await expect(read(version)).rejects.toMatchObject({
      code: 'KCERT_MANIFEST_MALFORMED',
      message: `k.yaml has apiVersion "${version}"`,
    })
})

test.each([undefined, 'stable-1'])(
  'with version %s, assumes the newest subject and reports it',
  (version) => {
    const { subject, notices } = kubeletClient(version)
    expect(subject).toMatchObject({ organization: [] })
    expect(notices).toEqual([
      expect.stringMatching(
        /^apiserver-kubelet-client: the Kubernetes version is unknown, so the request has no O=kubeadm:cluster-admins.*--kubernetes-version VERSION$/,
      ),
      bindingNotice,
    ])
  },
)

test('refuses an invalid version', () => {
  expect(() => kubeletClient('tomorrow')).toThrow('"tomorrow" is not a Kubernetes version')
})
