import { expect, test } from 'vitest'
import { listeningOf } from './control-planes.ts'
import { healthOf } from './health.ts'
import { verdictOf } from './probing.ts'

test('a client was believed only when it was refused in its own name', () => {
  expect(verdictOf({ status: 401, body: 'Unauthorized' })).toBe('refused')
  const forbidden = (user: string) => ({
    status: 403,
    body: `forbidden: User "${user}" cannot get path "/metrics"`,
  })
  expect(verdictOf(forbidden('kcert-rotation-probe'))).toBe('accepted')
  expect(verdictOf(forbidden('system:anonymous'))).toBeUndefined()
  expect(verdictOf({ status: 500, body: 'kcert-rotation-probe' })).toBeUndefined()
})

test('where a component listens is what its command line says', () => {
  expect(listeningOf(['kube-controller-manager', '--bind-address=127.0.0.1'])).toEqual({
    host: '127.0.0.1',
    port: 10257,
  })
  expect(listeningOf(['/usr/bin/kube-apiserver', '--secure-port', '8443', '--bind-address=0.0.0.0'])).toEqual(
    {
      host: '127.0.0.1',
      port: 8443,
    },
  )
  expect(listeningOf(['kube-scheduler', '--bind-address=10.0.0.5'])).toEqual({
    host: '10.0.0.5',
    port: 10259,
  })
})

test('each component says in its own place that it is well', () => {
  const health = (
    program: 'kubelet' | 'kube-proxy' | 'kube-apiserver' | 'kube-scheduler',
    ...flags: string[]
  ) => healthOf({ program, argv: [program, ...flags] })
  expect(health('kubelet')).toEqual({ host: '127.0.0.1', port: 10248, path: '/healthz', isTls: false })
  expect(health('kube-proxy', '--healthz-bind-address=10.0.0.5:10300').port).toBe(10300)
  expect(health('kube-apiserver')).toMatchObject({ path: '/readyz', port: 6443, isTls: true })
  expect(health('kube-scheduler')).toMatchObject({ path: '/healthz', port: 10259, isTls: true })
})
