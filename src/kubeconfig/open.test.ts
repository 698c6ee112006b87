import { expect, test } from 'vitest'
import { openKubeconfig, usableKubeconfig } from './open.ts'

const sound = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://10.0.0.1:6443}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

test('opens a kubeconfig that client-go accepts', async () => {
  const { kubeconfig, refusal } = (await openKubeconfig(sound))!
  expect([kubeconfig.currentContext, refusal]).toEqual(['x', undefined])
  expect((await usableKubeconfig(sound, 'cp1:/k')).kubeconfig.users.map(({ name }) => name)).toEqual(['u'])
})

// The parts that kubectl 1.36 rejects: d2, d3 and d6 of the comparison with client-go.
test.each([
  ['a number as a token', sound.replace('token: t', 'token: 5'), 'users[u].token'],
  ['a number as the server', sound.replace('https://10.0.0.1:6443', '5'), 'clusters[c].server'],
  ['another apiVersion', sound.replace('apiVersion: v1', 'apiVersion: v2'), 'apiVersion'],
  ['YAML 1.2', `%YAML 1.2\n---\n${sound}`, 'directive'],
  ['an escaped slash', sound.replace('name: u,', 'name: "u\\/",'), 'escape'],
  ['Latin-1', Buffer.from(`# gr\u00fc\u00df\n${sound}`, 'latin1'), 'not UTF-8'],
])('rejects a kubeconfig with %s, and keeps the readable part', async (_, content, reason) => {
  const { kubeconfig, refusal } = (await openKubeconfig(content))!
  expect(refusal).toContain(reason)
  expect(kubeconfig.clusters).toHaveLength(1)
  await expect(usableKubeconfig(content, 'cp1:/etc/kubernetes/admin.conf')).rejects.toMatchObject({
    code: 'KCERT_KUBECONFIG_UNUSABLE',
    message: 'client-go rejects the kubeconfig cp1:/etc/kubernetes/admin.conf',
    why: expect.stringContaining(reason),
    next: expect.stringContaining('kcert inspect /etc/kubernetes/admin.conf'),
  })
})

test.each(['', 'kind: Pod\n', 'plain text'])('rejects %j, which is not a kubeconfig', async (text) => {
  expect(await openKubeconfig(text)).toBeUndefined()
  await expect(usableKubeconfig(text, 'k')).rejects.toMatchObject({
    code: 'KCERT_KUBECONFIG_UNUSABLE',
    message: 'k is not a kubeconfig',
  })
})
