// Serial numbers (RFC 5280 section 4.1.2.2): positive, at most 20 bytes, and unique for each issuer.

/** Returns this number of random bytes. */
export type RandomBytes = (count: number) => Uint8Array

// 128 bits, as in kube-controller-manager. The CA/Browser Forum requires 64.
const bytes = 16

// A source that returns only taken numbers is broken: two draws of 128 bits do not collide in practice.
const mostDraws = 16

/** Returns a new serial number in hexadecimal, as whole bytes, that is not taken. Throws when the source is not random. */
export function drawSerialNumber(random: RandomBytes, isTaken: (serialNumber: string) => boolean): string {
  for (let draw = 0; draw < mostDraws; draw++) {
    const serialNumber = normalSerialNumber(Buffer.from(random(bytes)).toString('hex'))
    if (serialNumber !== '00' && !isTaken(serialNumber)) return serialNumber
  }
  throw new Error('the random source repeats itself')
}

/** Returns hexadecimal in lower case and whole bytes, without leading zero bytes. */
export function normalSerialNumber(hex: string): string {
  const digits = hex.toLowerCase().replace(/^0+/, '')
  return digits === '' ? '00' : digits.padStart(digits.length + (digits.length % 2), '0')
}
