import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { CertificateRequest } from '../x509/request.ts'
import { kubeadmRequests } from './kubeadm-requests.ts'
import { kubeadmDefaults, readKubeadmSettings } from './kubeadm-settings.ts'
import { makeRequest } from './request-spec.ts'

const settings = { ...kubeadmDefaults, nodeName: 'cp1', advertiseAddress: '10.0.0.11' }

test('an RSA key of any length signs with SHA-256, as kubeadm lets it', () => {
  const key = generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey
  const [{ spec }] = kubeadmRequests('admin.conf', settings) as [ReturnType<typeof kubeadmRequests>[number]]
  expect(CertificateRequest.parse(makeRequest(spec, key)).signatureAlgorithm).toBe('sha256WithRSAEncryption')
})

test.each([
  ['10.96.0.0/12', '10.96.0.1'],
  ['10.100.200.0/24,fd00::/108', '10.100.200.1'],
  ['10.96.7.9/12', '10.96.0.1'],
  ['fd00:100::/108', 'fd00:100::1'],
])('of the services %s the API server has %s', (serviceSubnet, address) => {
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
  'behind %s people go to %s, and what runs on the node to the node',
  (controlPlaneEndpoint, server, name) => {
    const requests = kubeadmRequests('all', { ...settings, controlPlaneEndpoint })
    const servers = Object.fromEntries(
      requests.flatMap(({ kubeconfig }) => (kubeconfig ? [[kubeconfig.file, kubeconfig.server]] : [])),
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

test('a name in certSANs that is none is refused, as kubeadm refuses it', async () => {
  const text = 'kind: ClusterConfiguration\napiServer: {certSANs: ["not a name"]}\n'
  const configured = {
    ...(await readKubeadmSettings(text, 'x')),
    nodeName: 'cp1',
    advertiseAddress: '10.0.0.11',
  }
  expect(() => kubeadmRequests('apiserver', configured)).toThrow(/"not a name".*is no name/)
})
