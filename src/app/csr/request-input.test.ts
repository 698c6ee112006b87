import { expect, test } from 'vitest'
import { clientDescription, requestPem } from '../../../test/csr/made-requests.ts'
import { entriesToSign } from './request-input.ts'

const pem = requestPem(clientDescription())

test('signs the requests in manifests, each under the name of its object', async () => {
  const object = (name: string): string =>
    `kind: CertificateSigningRequest\nmetadata: {name: ${name}}\nspec: {request: ${Buffer.from(pem).toString('base64')}}\n`
  const entries = await entriesToSign(Buffer.from(`${object('a')}---\n${object('b')}`), 'two.yaml')
  expect(entries.map(({ source, entry }) => [source, entry])).toEqual([
    ['two.yaml', 'a'],
    ['two.yaml', 'b'],
  ])
})

test('refuses a manifest with an invalid request, and one without a request object', async () => {
  const broken = 'kind: CertificateSigningRequest\nmetadata: {name: a}\nspec: {request: "!"}\n'
  await expect(entriesToSign(Buffer.from(broken), 'f')).rejects.toThrow('f contains no certificate request')
  const other = 'kind: ConfigMap\ndata: {text: CertificateSigningRequest}\n'
  await expect(entriesToSign(Buffer.from(other), 'f')).rejects.toThrow(
    'f contains no CertificateSigningRequest',
  )
})
