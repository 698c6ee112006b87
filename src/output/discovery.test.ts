import { expect, test } from 'vitest'
import type { Discovery } from '../rotation/discovery-report.ts'
import { renderDiscovery } from './discovery.ts'
import { wholeWidth } from './view.ts'

const found: Discovery = {
  apiVersion: 'kcert/v1',
  kind: 'Discovery',
  inventory: { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [] },
  nodes: [],
  components: [],
  blockers: [],
}

test.each([
  [{ out: 'kcert.yaml' }, 'kcert rotate-ca plan'],
  [{ out: 'a b.yaml' }, "kcert rotate-ca plan --inventory 'a b.yaml'"],
  [{ out: 'kcert.yaml', isDry: true }, 'kcert rotate-ca discover'],
  [{ out: 'a b.yaml', isDry: true }, "kcert rotate-ca discover --out 'a b.yaml'"],
  [{ out: 'a.yaml', force: true, isDry: true }, 'kcert rotate-ca discover --out a.yaml --force'],
])('advises a command that finds the inventory: %j', (asked, next) => {
  const lines = renderDiscovery(
    'isDry' in asked ? found : { ...found, written: asked.out },
    wholeWidth,
    asked,
  )
  expect(lines).toMatch(new RegExp(`^next: ${next}$`, 'm'))
})
