import { expect, test } from 'vitest'
import type { CopySnapshot, Observed } from './snapshot.ts'
import { restoreFiles } from './undo.ts'

const copyOf = (node: string, path: string, digest?: string): CopySnapshot =>
  ({ node, phase: 9, of: { path }, ...(digest !== undefined && { digest }), mode: 0o600 }) as CopySnapshot

const filesOf = (...files: readonly (readonly [node: string, path: string, digest: string])[]) =>
  ({
    files: files.map(([node, path, digest]) => {
      const contains = {
        kind: path.endsWith('.key') ? 'key' : path.endsWith('.pub') ? 'public-keys' : 'certificates',
      }
      return { node, path, digest, mode: 0o600, contains }
    }),
  }) as unknown as Observed<'files'>

const [crt, key] = ['/pki/client.crt', '/pki/client.key']
const copies = [copyOf('cp1', crt, 'old crt'), copyOf('cp1', key, 'old key'), copyOf('cp2', key, 'old key')]

test('restores a certificate and the key next to it in one write', () => {
  const now = filesOf(['cp1', crt, 'new crt'], ['cp1', key, 'new key'], ['cp2', key, 'new key'])
  expect(restoreFiles(copies, now).map(({ node, path, content }) => [node, path, content])).toEqual([
    [
      'cp1',
      crt,
      { kind: 'copy', digest: 'old crt', key: { path: key, replaces: 'new key', digest: 'old key' } },
    ],
    ['cp2', key, { kind: 'copy', digest: 'old key' }],
  ])
})

test('restores the two files of a service account key one by one', () => {
  const now = filesOf(['cp1', '/pki/sa.pub', 'new'], ['cp1', '/pki/sa.key', 'new'])
  const its = [copyOf('cp1', '/pki/sa.pub', 'old'), copyOf('cp1', '/pki/sa.key', 'old')]
  expect(restoreFiles(its, now).map(({ path }) => path)).toEqual(['/pki/sa.pub', '/pki/sa.key'])
})

test.each([
  [
    'is restored already',
    filesOf(['cp1', crt, 'new crt'], ['cp1', key, 'old key'], ['cp2', key, 'old key']),
    copies,
  ],
  [
    'did not exist earlier',
    filesOf(['cp1', crt, 'new crt'], ['cp1', key, 'new key']),
    [copyOf('cp1', crt, 'old crt'), copyOf('cp1', key)],
  ],
] as const)('restores a certificate alone when its key %s', (_what, now, its) => {
  expect(restoreFiles(its, now)[0]).toMatchObject({ path: crt, content: { kind: 'copy', digest: 'old crt' } })
  expect(restoreFiles(its, now)[0]!.content).not.toHaveProperty('key')
})
