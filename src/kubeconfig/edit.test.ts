import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readDocuments } from './documents.ts'
import { editKubeconfig, type NewMaterial } from './edit.ts'
import { type Kubeconfig, readKubeconfig } from './kubeconfig.ts'
import '../../test/seeded.ts'

const text = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: b2xk # the old one
    server: https://10.0.0.10:6443
  name: kubernetes
# of the other site
- name: other
  cluster:
    server: https://other:6443
    certificate-authority: ca.crt
contexts: []
current-context: ""
kind: Config
users:
- name: system:node:cp1
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
- name: admin
  user: {"client-certificate-data": "b2xk", "client-key-data": "b2xk"}
`

const data = (content: string): NewMaterial => ({ data: Buffer.from(content) })

async function read(edited: string): Promise<Kubeconfig> {
  const [root] = (await readDocuments(edited)).documents
  return readKubeconfig(root!)
}

describe('editKubeconfig', () => {
  test('changes only the CA data of one cluster', async () => {
    const changes = { clusters: [{ name: 'kubernetes', certificateAuthority: data('new') }] }
    expect(await editKubeconfig(text, changes)).toBe(text.replace('b2xk #', 'bmV3 #'))
  })

  test('replaces a file with data, and data with a file', async () => {
    const changes = {
      clusters: [{ name: 'other', certificateAuthority: data('new') }],
      users: [
        {
          name: 'admin',
          clientCertificate: { file: '/a.pem' },
          clientKey: { file: '/a.pem' },
        },
      ],
    }
    const edited = await editKubeconfig(text, changes)
    expect(edited).toBe(
      text
        .replace('    certificate-authority: ca.crt\n', '    certificate-authority-data: bmV3\n')
        .replace(
          '{"client-certificate-data": "b2xk", "client-key-data": "b2xk"}',
          '{"client-certificate": "/a.pem", "client-key": "/a.pem"}',
        ),
    )
    expect((await read(edited)).defects).toEqual([])
  })

  test('sets fields of a user without any', async () => {
    const bare = 'users:\n- name: a\n  user:\nclusters: []\ncontexts: []\n'
    expect(await editKubeconfig(bare, { users: [{ name: 'a', clientKey: { file: 'k' } }] })).toBe(
      bare.replace('user:', 'user:\n    client-key: k'),
    )
  })

  test('lists the existing names for an unknown name', async () => {
    const changes = { clusters: [{ name: 'kubernets', certificateAuthority: data('new') }] }
    await expect(editKubeconfig(text, changes)).rejects.toMatchObject({
      code: 'KCERT_KUBECONFIG_UNUSABLE',
      why: 'it has: kubernetes, other',
    })
    await expect(editKubeconfig('kind: Pod\n', changes)).rejects.toMatchObject({
      code: 'KCERT_KUBECONFIG_UNUSABLE',
    })
  })

  test('reads back any bytes and file names as they were set, and changes nothing else', async () => {
    const material = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes): NewMaterial => ({ data: bytes })),
      fc.string({ minLength: 1 }).map((file): NewMaterial => ({ file })),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('kubernetes', 'other'),
        fc.constantFrom('system:node:cp1', 'admin'),
        fc.tuple(material, material, material),
        async (cluster, user, [certificateAuthority, clientCertificate, clientKey]) => {
          const edited = await read(
            await editKubeconfig(text, {
              clusters: [{ name: cluster, certificateAuthority }],
              users: [{ name: user, clientCertificate, clientKey }],
            }),
          )
          const before = await read(text)
          const of = ({ field: _, ...rest }: Record<string, unknown>): unknown => rest
          const bare = (material_: NewMaterial): unknown =>
            'data' in material_ ? { data: Buffer.from(material_.data) } : material_
          for (const [index, { name, ...found }] of edited.clusters.entries()) {
            const was = before.clusters[index]!
            expect(name).toBe(was.name)
            expect(found.server).toBe(was.server)
            const wanted = name === cluster ? bare(certificateAuthority) : of({ ...was.certificateAuthority })
            expect(of({ ...found.certificateAuthority })).toEqual(wanted)
          }
          for (const [index, { name, ...found }] of edited.users.entries()) {
            const was = before.users[index]!
            expect(of({ ...found.clientKey })).toEqual(
              name === user ? bare(clientKey) : of({ ...was.clientKey }),
            )
            expect(of({ ...found.clientCertificate })).toEqual(
              name === user ? bare(clientCertificate) : of({ ...was.clientCertificate }),
            )
          }
        },
      ),
    )
  })
})
