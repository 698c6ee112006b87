import { expect, test } from 'vitest'
import { withOverrides } from './overrides.ts'

// Command-line flags that override parts of a kubeconfig, as in client-go.

const selected = {
  contextName: 'x',
  clusterName: 'c',
  userName: 'u',
  cluster: {
    server: 'https://a:6443',
    'tls-server-name': 'a',
    'certificate-authority-data': 'Q0E=',
    'proxy-url': 'http://p',
  },
  user: { 'client-certificate': 'c', 'client-key': 'k', as: 'ann', 'as-groups': ['g'], 'as-uid': '1' },
  files: ['f'],
  source: 'f',
  kubectl: 'kubectl' as never,
}

test('keeps a context without overrides unchanged', () => {
  expect(withOverrides(selected, {})).toEqual(selected)
})

test('clears the TLS server name of the kubeconfig where --server is given', () => {
  expect(withOverrides(selected, { server: 'https://b' }).cluster).toEqual({
    server: 'https://b',
    'tls-server-name': undefined,
    'certificate-authority-data': 'Q0E=',
    'proxy-url': 'http://p',
  })
})

test('replaces the CA and insecure-skip-tls-verify of the kubeconfig by --certificate-authority', () => {
  const insecure = { ...selected, cluster: { server: 's', 'insecure-skip-tls-verify': true } }
  expect(withOverrides(insecure, { certificateAuthority: 'ca.crt' }).cluster).toMatchObject({
    'certificate-authority': 'ca.crt',
    'insecure-skip-tls-verify': false,
  })
})

test('clears the CA of the kubeconfig where --insecure-skip-tls-verify is given', () => {
  expect(withOverrides(selected, { skipsTlsVerify: true }).cluster).toMatchObject({
    'certificate-authority': undefined,
    'certificate-authority-data': undefined,
    'insecure-skip-tls-verify': true,
  })
})

test('sends a token of the command line without the client certificate of the kubeconfig', () => {
  expect(withOverrides(selected, { token: 'abc' }).user).toEqual({ token: 'abc' })
})

test('replaces the whole impersonation of the kubeconfig by --as', () => {
  expect(withOverrides(selected, { as: 'bob' }).user).toEqual({
    'client-certificate': 'c',
    'client-key': 'k',
    as: 'bob',
  })
  expect(withOverrides(selected, { token: 'abc', as: 'bob', asGroups: ['a', 'b'] }).user).toEqual({
    token: 'abc',
    as: 'bob',
    'as-groups': ['a', 'b'],
  })
})
