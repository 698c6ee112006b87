import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { kcert } from './program.ts'
import { validatorOf, violations } from './schemas.ts'

// Every JSON document that kcert prints is valid against the schema of its kind in docs/, and has no field that the schema lacks.

const at = ['--at', '2026-11-21T00:00:00Z']
const sessions: readonly { readonly args: readonly string[]; readonly kind: string }[] = [
  { args: ['inspect', 'examples/kubelet.kubeconfig', ...at], kind: 'InspectionReport' },
  { args: ['inspect', 'examples', ...at], kind: 'InspectionReport' },
  { args: ['verify', '-', '--roots', 'examples/kubelet.kubeconfig', ...at], kind: 'VerificationReport' },
]

test.each(sessions)('$args prints a $kind', ({ args, kind }) => {
  const { stdout } = kcert([...args, '-o', 'json'], { stdin: clusterCa() })
  const document = JSON.parse(stdout) as { apiVersion: string; kind: string }
  expect(document).toMatchObject({ apiVersion: 'kcert/v1', kind })
  expect(violations(kind, document)).toEqual([])
})

test('every schema is valid for a validator', () => {
  const schemas = globSync('docs/schemas/*.json')
  expect(schemas.length).toBeGreaterThan(0)
  for (const path of schemas) expect(() => validatorOf(basename(path, '.json')), path).not.toThrow()
})

test('jq filters in the documentation select fields of the schemas', () => {
  const schemas = globSync('docs/schemas/*.json').map((path) => readFileSync(path, 'utf8'))
  const fields = new Set(
    schemas.flatMap((schema) => [...schema.matchAll(/"(\w+)": \{/g)].map(([, field]) => field)),
  )
  const pages = globSync(['README.md', 'docs/**/*.md']).map((path) => readFileSync(path, 'utf8'))
  const filters = pages.flatMap((page) =>
    [...page.matchAll(/\bjq (?:-r )?('[^']+'|\.\S+)/g)].map(([, filter = '']) => filter),
  )
  expect(filters.length).toBeGreaterThan(15)
  const unknown = (filter: string) =>
    [...filter.matchAll(/\.([A-Za-z]\w*)/g)].filter(([, field]) => !fields.has(field))
  expect(filters.filter((filter) => unknown(filter).length > 0)).toEqual([])
})

/** The certificate in the example kubeconfig, as PEM. */
function clusterCa(): string {
  return kcert(['inspect', 'examples/kubelet.kubeconfig', '-o', 'pem']).stdout
}
