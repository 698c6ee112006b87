import { expect, test } from 'vitest'
import { keys, selfSigned } from '../../test/fixtures/certificates.ts'
import { readerOf } from '../../test/pki/inspected.ts'
import { explicit, integer, nullElement, octetString, oid, sequence } from '../x509/der-writer.ts'
import { oidOf } from '../x509/oids.ts'
import { Inspection } from './inspection.ts'
import { defaultThresholds } from './thresholds.ts'

const data = (content: Uint8Array): Uint8Array =>
  sequence(oid(oidOf('data')), explicit(0, octetString(content)))
const bag = sequence(
  oid(oidOf('certBag')),
  explicit(0, sequence(oid(oidOf('x509Certificate')), explicit(0, octetString(selfSigned({}, keys.p256))))),
)
/** A keystore that no password opens: its MAC consists of zeros. */
const keystore = sequence(
  integer(3),
  data(sequence(data(sequence(bag)))),
  sequence(
    sequence(sequence(oid(oidOf('sha1')), nullElement), octetString(Buffer.alloc(20))),
    octetString(Buffer.alloc(8, 1)),
    integer(400_000),
  ),
)

test('tries the first of 30 keystores with 400,000 iterations, and continues without the others', async () => {
  const inspection = new Inspection({
    now: new Date('2026-11-21T09:00:00Z'),
    thresholds: defaultThresholds,
    readReferencedFile: readerOf(new Map()),
    password: 'wrong',
  })
  for (let i = 1; i <= 30; i++) await inspection.add({ name: `${i}.p12`, bytes: keystore })
  const { problems } = inspection.finish().report
  const tooMuch = problems.filter(({ message }) => message.includes('costs too much'))
  expect(problems).toHaveLength(30)
  expect(new Set(tooMuch.map(({ fix }) => fix))).toEqual(new Set(['read this file alone']))
  expect(tooMuch.map(({ source }) => source)).toEqual(Array.from({ length: 18 }, (_, i) => `${i + 13}.p12`))
}, 120_000)
