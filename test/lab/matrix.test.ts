import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { appendRow, isDone, readRows, rowOf, sourcesOfRotation, tableOf } from './matrix.ts'
import { describeEvidence } from './rotation-evidence.ts'

const evidence = describeEvidence({
  verdict: { holds: true, samples: 46_839, unexpected: [], cells: [] },
  seconds: 605.6,
  phases: [{ number: 1, seconds: 6, actions: 4 }],
  restarted: ['cp1/(etcd)'],
  notReadySeconds: 0,
  startingSeconds: 2,
  longestSigningSeconds: 2.1,
  table: [],
})
const commit = 'a'.repeat(40)
const sources = 'c'.repeat(40)
const good = { commit, sources, name: 'rsa-1.34', isGood: true }

test('a row has the values of the evidence, and ? for missing ones', () => {
  const failed = rowOf({ ...good, name: 'rsa-1.37', isGood: false }, 'lab: kubeadm init gave up')
  expect(tableOf([rowOf(good, `before\n${evidence}after\n`), failed])).toBe(
    [
      '| Kubernetes | wall time | samples | unexpected | restarts of API servers and etcd | NotReady | commit |',
      '| --- | --- | --- | --- | --- | --- | --- |',
      '| rsa-1.34 | 605.6 s | 46839 | 0 | 1 | 0.0 s | aaaaaaaa |',
      '| rsa-1.37 (failed) | ? | ? | ? | ? | ? | aaaaaaaa |',
      '',
    ].join('\n'),
  )
})

test('skips a rehearsal that passed on the same sources; repeats one that failed or ran on uncommitted changes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-matrix-'))
  const file = join(folder, 'matrix.jsonl')
  try {
    expect(readRows(file, sources).size).toBe(0)
    appendRow(file, rowOf({ ...good, isGood: false }, evidence))
    expect(isDone(readRows(file, sources).get('rsa-1.34'))).toBe(false)
    writeFileSync(file, `{"sources":"${sources}","name":"rsa-1.3`, { flag: 'a' })
    appendRow(file, rowOf(good, evidence))
    expect([...readRows(file, sources).values()].map(isDone)).toEqual([true])
    expect(readRows(file, 'b'.repeat(40)).size).toBe(0)
    const dirty = `${sources}-dirty`
    appendRow(file, rowOf({ ...good, sources: dirty }, evidence))
    expect([...readRows(file, dirty).values()].map(isDone)).toEqual([false])
    expect(isDone(undefined)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('rows stay valid while no file changes that a command of rotate-ca loads', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-matrix-'))
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  try {
    write('src/main.ts', '')
    write('src/commands/rotate-ca.ts', "import { a } from '../rotation/a.ts'\n")
    write('src/commands/rotate-ca/plan.ts', "const b = await import('../../rotation/b.ts')\n")
    write('src/rotation/a.ts', "import type { C } from './c.ts'\n")
    for (const path of ['src/rotation/b.ts', 'src/rotation/c.ts', 'src/commands/probe.ts']) write(path, '')
    const before = sourcesOfRotation(folder)
    write('src/rotation/c.ts', '// only a type of it is used')
    write('src/commands/probe.ts', '// changed')
    write('src/commands/rotate-ca/plan.test.ts', '// new')
    expect(sourcesOfRotation(folder)).toBe(before)
    for (const path of ['src/main.ts', 'src/rotation/a.ts', 'src/rotation/b.ts']) {
      const then = sourcesOfRotation(folder)
      write(path, '// changed')
      expect(sourcesOfRotation(folder)).not.toBe(then)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
