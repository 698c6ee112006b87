import fc from 'fast-check'
import { expect, test } from 'vitest'
import { serverFlight } from './server-flight.ts'
import '../../test/seeded.ts'

// served.test.ts reads whole handshakes of both versions. These tests use messages that node:tls servers never send.

function u24(length: number): Buffer {
  return Buffer.from([length >> 16, (length >> 8) & 255, length & 255])
}

function message(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type]), u24(body.length), body])
}

function record(fragment: Buffer): Buffer {
  return Buffer.concat([Buffer.from([22, 3, 3, fragment.length >> 8, fragment.length & 255]), fragment])
}

const certificateList = (received: Buffer, secret?: Buffer) => serverFlight(received, secret)?.certificates

const serverHello = message(
  2,
  Buffer.concat([Buffer.from([3, 3]), Buffer.alloc(32, 7), Buffer.from([0, 0xc0, 0x2b, 0])]),
)
const certificate = message(11, Buffer.concat([u24(3 + 5), u24(5), Buffer.from('hello')]))

test('reads messages split over several records, and several in one record', () => {
  const all = Buffer.concat([serverHello, certificate])
  const inPieces = Array.from({ length: all.length }, (_, i) => record(all.subarray(i, i + 1)))
  expect(certificateList(record(all))).toEqual([Buffer.from('hello')])
  expect(certificateList(Buffer.concat(inPieces))).toEqual([Buffer.from('hello')])
})

test('reads a long message in one-byte records in linear time', () => {
  const certificate = message(11, Buffer.concat([u24(3 + 600_000), u24(600_000), Buffer.alloc(600_000)]))
  const all = Buffer.concat([serverHello, certificate])
  const inPieces = Buffer.concat(Array.from({ length: all.length }, (_, i) => record(all.subarray(i, i + 1))))
  const began = performance.now()
  expect(certificateList(inPieces)).toEqual([Buffer.alloc(600_000)])
  // Copying the previous data for each record would be 180 GB.
  expect(performance.now() - began).toBeLessThan(10_000)
})

test('returns nothing for a truncated list', () => {
  const whole = record(Buffer.concat([serverHello, certificate]))
  for (let end = 0; end < whole.length; end++) expect(certificateList(whole.subarray(0, end))).toBeUndefined()
})

test('returns nothing for data that the secret does not decrypt', () => {
  const hello13 = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    Buffer.from([0, 0x13, 0x01, 0, 0, 6, 0, 43, 0, 2, 3, 4]),
  ])
  const sealed = (length: number) =>
    Buffer.concat([Buffer.from([23, 3, 3, 0, length]), Buffer.alloc(length, 9)])
  for (const length of [1, 16, 17, 100]) {
    const received = Buffer.concat([record(message(2, hello13)), sealed(length)])
    expect(certificateList(received, Buffer.alloc(32))).toBeUndefined()
  }
  expect(certificateList(Buffer.concat([record(message(2, hello13)), sealed(100)]))).toBeUndefined()
})

test('never throws, whatever a server sends', () => {
  const garbled = fc
    .tuple(fc.array(fc.tuple(fc.nat(), fc.nat(255))), fc.uint8Array({ maxLength: 40 }))
    .map(([changes, tail]) => {
      const bytes = Buffer.concat([record(serverHello), record(certificate), tail])
      for (const [at, value] of changes) bytes[at % bytes.length] = value
      return bytes
    })
  fc.assert(
    fc.property(garbled, (bytes) => {
      const list = certificateList(bytes, Buffer.alloc(32))
      expect(list === undefined || list.every((der) => der.length <= bytes.length)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
