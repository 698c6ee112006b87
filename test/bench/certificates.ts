import { createHash, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

export interface CertificateFolder {
  readonly root: string
  /** The first leaf's file. */
  readonly leaf: string
}
