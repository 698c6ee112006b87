import { expect, test } from 'vitest'
import { remoteAddresses } from './tcp-connections.ts'

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
const line = (local: string, remote: string, state: string) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n`

test('reads the remote addresses of established connections to the port', () => {
  const table = [
    head,
    line('00000000:094B', '00000000:0000', '0A'),
    line('0100007F:094B', '0100007F:C350', '01'),
    line('0A00000A:094B', '0B00000A:C351', '01'),
    line('0A00000A:094B', '0B00000A:C352', '01'),
    line('0A00000A:094C', '0C00000A:C353', '01'),
    line('0A00000A:094B', '0D00000A:C354', '06'),
  ].join('')
  expect(remoteAddresses(table, 2379)).toEqual(['127.0.0.1', '10.0.0.11'])
})

test('reads IPv6 and mapped IPv4 addresses', () => {
  const table = [
    head,
    line('00000000000000000000000000000000:094B', '0000000000000000FFFF00000B00000A:C351', '01'),
    line('000000FD000000000000000001000000:094B', '000000FD000000000000000002000000:C352', '01'),
  ].join('')
  expect(remoteAddresses(table, 2379)).toEqual(['10.0.0.11', 'fd00::2'])
})

test('ignores lines in another format', () => {
  expect(remoteAddresses('x\n1: zz:094B yy:1 01\n\n', 2379)).toEqual([])
})
