import { describe, expect, test } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import { inspect, named, noFiles } from '../../test/pki/inspected.ts'
import { renderHtml } from '../output/inspection/html.ts'
import { renderText } from '../output/inspection/text.ts'
import { renderWide } from '../output/inspection/wide.ts'
import { renderJson } from '../output/json.ts'
import { noPaint } from '../output/paint.ts'

const now = new Date('2026-11-26T00:00:00Z')
const [rsa, ecdsa] = serviceAccountKeys
const base64 = (text: string) => Buffer.from(text).toString('base64')

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443'}}]
users:
- {name: legacy, user: {token: ${rsa.legacyToken}}}
- {name: file, user: {tokenFile: /srv/token}}
- {name: opaque, user: {token: 31ada4fd-adec-460c-809a-9e56ceb75269}}
contexts: []
`

const secrets = `apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: web-token, namespace: shop}
data: {token: ${base64(rsa.legacyToken)}}
---
apiVersion: v1
kind: Secret
metadata: {name: argo, namespace: argocd}
data: {config: ${base64(JSON.stringify({ bearerToken: ecdsa.boundToken }))}}
---
apiVersion: v1
kind: Secret
metadata: {name: kubeconfig, namespace: build}
data: {value: ${base64(kubeconfig)}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts, namespace: build}
data:
  a.sh: |
    curl -H 'Authorization: Bearer ${ecdsa.boundToken}' https://a
    curl -H 'Authorization: Bearer ${rsa.boundToken}' https://b
`

async function tokensOf(name: string, content: string, file = '') {
  const readReferencedFile: typeof noFiles = (path) =>
    file === '' ? noFiles(path) : { name: path, bytes: Buffer.from(file), file: { path, mode: 0o600 } }
  const { report } = await inspect(now, [named(name, content)], { readReferencedFile })
  return report
}

describe('key IDs', () => {
  test('of sa.pub with two keys, in the order of the file', async () => {
    const { keys } = await tokensOf('sa.pub', ecdsa.publicKey + rsa.publicKey)
    expect(keys.map(({ kind, keyId }) => [kind, keyId])).toEqual([
      ['public', ecdsa.keyId],
      ['public', rsa.keyId],
    ])
  })

  test('are in the text of a key file', async () => {
    const report = await tokensOf('sa.pub', rsa.publicKey)
    expect(renderText(report, { width: 120, paint: noPaint })).toContain(rsa.keyId)
  })
})

describe('service account tokens', () => {
  test('of a kubeconfig and of its token file', async () => {
    const { tokens, problems } = await tokensOf('admin.conf', kubeconfig, `${ecdsa.boundToken}\n`)
    expect(problems.filter(({ severity }) => severity !== 'info')).toEqual([])
    expect(tokens).toEqual([
      {
        source: 'admin.conf',
        entry: 'user legacy: token',
        keyId: rsa.keyId,
        issuer: 'kubernetes/serviceaccount',
        subject: 'system:serviceaccount:shop:web',
        audiences: [],
        boundTo: 'secret web-token',
        isExpired: false,
      },
      {
        source: 'admin.conf',
        entry: 'user file: tokenFile /srv/token',
        keyId: ecdsa.keyId,
        issuer: 'https://kubernetes.default.svc.cluster.local',
        subject: 'system:serviceaccount:shop:web',
        audiences: ['https://kubernetes.default.svc.cluster.local'],
        credentialId: 'JTI=5a8d3f0e-4c1b-4c55-9d0a-2f8f6f0b7c11',
        boundTo: 'pod web-0',
        expirationTimestamp: '2026-11-18T12:06:47Z',
        isExpired: true,
      },
    ])
  })

  test('of a file', async () => {
    const { tokens, problems, summary } = await tokensOf('token', rsa.boundToken)
    expect(tokens).toMatchObject([{ source: 'token', entry: '', keyId: rsa.keyId }])
    expect(problems).toEqual([])
    expect(summary).toMatchObject({ sources: 1, tokens: 1 })
  })

  test('in values of Secrets and ConfigMaps, once each', async () => {
    const { tokens } = await tokensOf('all.yaml', secrets)
    expect(tokens.map(({ entry, keyId }) => [entry, keyId])).toEqual([
      ['Secret shop/web-token data[token]', rsa.keyId],
      ['Secret argocd/argo data[config]', ecdsa.keyId],
      ['Secret build/kubeconfig data[value] user legacy: token', rsa.keyId],
      ['ConfigMap build/scripts data[a.sh] token 1', ecdsa.keyId],
      ['ConfigMap build/scripts data[a.sh] token 2', rsa.keyId],
    ])
  })

  test('appear in no output', async () => {
    const report = await tokensOf('all.yaml', secrets)
    const view = { width: 80, paint: noPaint }
    const texts = [renderText(report, view), renderWide(report, view), renderHtml(report), renderJson(report)]
    for (const { legacyToken, boundToken } of serviceAccountKeys) {
      // Any 12 characters of header, claims or signature.
      const traces = [legacyToken, boundToken].flatMap((token) => token.match(/.{12}/g)!)
      for (const text of texts) expect(traces.filter((trace) => text.includes(trace))).toEqual([])
    }
    expect(texts.every((text) => text.includes(rsa.keyId))).toBe(true)
  })
})
