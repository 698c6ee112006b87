import { describe, expect, test } from 'vitest'
import { mayBeRelevant, shapeOf } from './sniff.ts'

const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

describe('shapeOf', () => {
  test.each<[string, string | number[], string]>([
    ['nothing', '', 'empty'],
    ['white space after a byte order mark', '\ufeff \r\n', 'empty'],
    ['PEM', pem, 'pem'],
    ['PEM behind text', `subject=CN = x\n${pem}`, 'pem'],
    ['PEM behind text with colons', `Bag Attributes\n    friendlyName: x\nkey: value\n${pem}`, 'pem'],
    ['indented PEM, which no parser reads', `  ${pem}`, 'pem'],
    [
      'a ConfigMap with PEM in it',
      `kind: ConfigMap\ndata:\n  ca.crt: |\n${pem.replace(/^/gm, '    ')}`,
      'document',
    ],
    [
      'a ConfigMap in JSON with PEM in it',
      `{"kind":"ConfigMap","data":{"ca.crt":${JSON.stringify(pem)}}}`,
      'document',
    ],
    ['a kubeconfig', 'apiVersion: v1\nclusters: []\n', 'document'],
    ['a document after comments', '# made by\n# hand\n---\na: b\n', 'document'],
    ['a JSON list', ' [\n{}]', 'document'],
    ['DER with a long length', [0x30, 0x82, 1, 0, 0x30], 'der'],
    ['DER with a short length', [0x30, 3, 2, 1, 0], 'der'],
    ['BER of indefinite length', [0x30, 0x80, 2, 1, 3], 'der'],
    ['text that begins with a zero', '0x1f is a number\n', 'other'],
    ['base64', 'TUlJRGF6Q0NBbE9nQXdJQkFnSVVmWGc4c3JmNzFXd0U5UFhQZlN4Q1Y4V2xhSEF3RFFZSktv\n', 'base64'],
    ['a program', [0x7f, 0x45, 0x4c, 0x46, 0, 0], 'other'],
    ['prose', 'hello world, this is a text\n', 'other'],
  ])('of %s', (_name, content, expected) => {
    expect(shapeOf(Buffer.from(content as string))).toBe(expected)
  })
})

test("mayBeRelevant rejects documents without kcert's keywords", () => {
  const concerns = [
    'clusters: []',
    'kind: Secret',
    '{"kind":"ConfigMapList"}',
    'kind: MutatingWebhookConfiguration',
  ].map((text) => mayBeRelevant(Buffer.from(text)))
  expect(concerns).toEqual([true, true, true, true])
  expect(mayBeRelevant(Buffer.from('apiVersion: v1\nkind: Pod\n'))).toBe(false)
})
