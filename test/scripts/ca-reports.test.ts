import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { schemaFiles } from '../../scripts/docs/schemas.ts'
import { folderWithCa, inFolder, opensslRequest } from './ca-files.ts'

// Every JSON document of `kcert key` and `kcert ca` is valid against the schema of its kind, and has no field that the schema
// lacks.

const schemas = new Map(schemaFiles().map(([path, text]) => [path, JSON.parse(text) as object]))

function violations(document: { kind: string }): string[] {
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(closed(schemas.get(`docs/schemas/${document.kind}.json`)!) as object)
  validate(document)
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** Returns the schema with every object closed: a field that is missing in the schema is an error as well. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const members = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  return 'properties' in schema && 'type' in schema ? { ...members, additionalProperties: false } : members
}

const pair = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']

test.each([
  ['GeneratedKey', ['key', 'generate', '--out', 'k']],
  ['CertificateAuthority', ['ca', 'init', '--cn', 'x', '--path-length', '1', '--out', 'x', '--key-out', 'y']],
  ['CertificateAuthority', ['ca', 'renew', ...pair]],
  ['CertificateAuthority', ['ca', 'renew', ...pair, '--out', '-']],
  ['SignedCertificates', ['ca', 'sign', 'a.csr', ...pair, '--profile', 'server', '--out', 'a.crt']],
  ['SignedCertificates', ['ca', 'sign', 'a.csr', ...pair, '--profile', 'client', '--out', '-']],
  ['CaBundle', ['ca', 'bundle', 'ca.pem', 'ca.pem', '--out', 'bundle.pem']],
  ['CaBundle', ['ca', 'bundle', 'ca.pem']],
])('a %s of %j is valid against its schema', (kind, args) => {
  const at = folderWithCa()
  opensslRequest(at, 'a', '-addext', 'subjectAltName=DNS:a.example.com')
  const { stdout, stderr, exit } = inFolder(at)([...args, '-o', 'json'])
  expect([exit, stderr]).toEqual([0, ''])
  const document = JSON.parse(stdout) as { apiVersion: string; kind: string }
  expect(document).toMatchObject({ apiVersion: 'kcert/v1', kind })
  expect(violations(document)).toEqual([])
})

test('prints the same data in YAML and JSON', () => {
  const at = folderWithCa()
  const bundle = (format: string) => inFolder(at)(['ca', 'bundle', 'ca.pem', '-o', format]).stdout
  expect(parse(bundle('yaml'))).toEqual(JSON.parse(bundle('json')))
})
