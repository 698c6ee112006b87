import { expect, test } from 'vitest'
import { proxyFor } from './environment-proxy.ts'

const proxy = 'http://proxy.example.com:3128'

test.each<[server: string, env: Record<string, string>, found: string | undefined]>([
  ['https://api.example.com:6443', {}, undefined],
  ['https://api.example.com:6443', { HTTPS_PROXY: proxy }, proxy],
  ['https://api.example.com:6443', { https_proxy: proxy }, proxy],
  ['https://api.example.com:6443', { HTTP_PROXY: proxy }, undefined],
  ['https://api.example.com', { HTTPS_PROXY: 'proxy:3128' }, 'http://proxy:3128'],
  ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://127.0.0.1:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://127.example.com:6443', { HTTPS_PROXY: proxy }, proxy],
  ['https://api.example.com', { HTTPS_PROXY: proxy, NO_PROXY: '*' }, undefined],
  ['https://api.example.com', { HTTPS_PROXY: proxy, NO_PROXY: 'example.com' }, undefined],
  ['https://api.example.com', { HTTPS_PROXY: proxy, no_proxy: '.example.com' }, undefined],
  ['https://example.com', { HTTPS_PROXY: proxy, NO_PROXY: '.example.com' }, proxy],
  ['https://example.com', { HTTPS_PROXY: proxy, NO_PROXY: 'ample.com' }, proxy],
  ['https://api.example.com:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example.com:6443' }, undefined],
  ['https://api.example.com:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example.com:443' }, proxy],
  ['https://10.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'a.b, 10.0.0.0/8' }, undefined],
  ['https://11.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8,x/y' }, proxy],
  ['https://[2001:db8::7]:6443', { HTTPS_PROXY: proxy, NO_PROXY: '2001:db8::/32' }, undefined],
])('%s with %j', (server, env, found) => {
  expect(proxyFor(new URL(server), env)).toBe(found)
})
