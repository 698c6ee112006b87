import { expect, test } from 'vitest'
import type { Action } from '../../rotation/action.ts'
import { noPaint } from '../paint.ts'
import { rotationProgress } from './progress.ts'

test('reports pending items for their own wait, not for another wait whose text ends the same', () => {
  let text = ''
  const progress = rotationProgress({
    write: (more) => {
      text += more
    },
    isTerminal: true,
    width: 120,
    paint: noPaint,
    nowMs: () => 0,
  })
  const [long, short] = [{ kind: 'wait' }, { kind: 'wait' }] as [Action, Action]
  progress.tell({ kind: 'action-started', action: long, what: 'wait until every node is ready' })
  progress.tell({ kind: 'action-started', action: short, what: 'wait until node is ready' })
  text = ''
  progress.tell({
    kind: 'waiting',
    action: short,
    what: 'node is ready',
    missing: [{ at: 'w1', what: 'away' }],
  })
  expect(text).toContain('1 pending: w1 (away); wait until node is ready')
  expect(text).not.toContain('every node')
})
