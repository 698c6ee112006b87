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
  refusals: [],
}

test.each([
  ['kcert.yaml', 'kcert rotate-ca plan'],
  ['a b.yaml', "kcert rotate-ca plan --inventory 'a b.yaml'"],
  [undefined, 'kcert rotate-ca discover'],
])('advises a command that finds the inventory: written to %s', (written, next) => {
  const lines = renderDiscovery(written === undefined ? found : { ...found, written }, wholeWidth)
  expect(lines).toMatch(new RegExp(`^next: ${next}$`, 'm'))
})
