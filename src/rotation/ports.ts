import type { PatchObject, Probe, RestartComponent, RollWorkload, WriteFile } from './action.ts'
import type { CertificateRecord } from './certificate-record.ts'
import type { HandshakeRate, Observed, SectionName } from './snapshot.ts'

// The interfaces between the rotation and its environment. src/rotation-io/ and test/fakes/simulated-cluster* implement them; one
// contract suite tests both.

/**
 * Observes the cluster. Does not throw for a node that does not respond: the node is `unreachable`, and its files are absent.
 * Throws KcertError when no API server responds.
 */
export interface Observer {
  /**
   * Fetches only these sections. The runner adds `evidence` and `intents` from the journal. `remembered`: CAs of the rotation
   * that may be gone from every node, for `stored`.
   */
  observe<Section extends SectionName>(
    sections: readonly Section[],
    remembered?: readonly CertificateRecord[],
  ): Promise<Observed<Section>>
}

/**
 * Executes an action once, and resolves when it is done. Throws KCERT_ROTATION_DRIFT when a file or object differs from what the
 * action replaces, KCERT_UNREACHABLE, or KCERT_FILE_NOT_WRITTEN. A completed action is not repeated. Everything that a write
 * replaces is first copied into the index on the node, with its phase.
 */
export interface Executor {
  write(action: WriteFile): Promise<void>
  patch(action: PatchObject): Promise<void>
  /** Resolves when a process other than `replaces` runs and is healthy. */
  restart(action: RestartComponent): Promise<void>
  roll(action: RollWorkload): Promise<void>
  /** Retries until success or the deadline. The result is evidence in both cases. */
  probe(action: Probe): Promise<ProbeAnswer>
}

/** The result of a probe, and its measurement. */
export interface ProbeAnswer {
  readonly ok: boolean
  readonly detail: string
  /** For `handshake-rate`. */
  readonly rate?: HandshakeRate
  /** For `handshake-errors`: waived clients that failed, with reason and count. */
  readonly accepted?: readonly string[]
  /** For `handshake-errors`: addresses of clients that reject the certificate, or whose certificate is rejected. */
  readonly refusing?: readonly string[]
}

/** The journal's file. `append` resolves when the line is on disk. When it throws, the action does not run. */
export interface JournalFile {
  read(): Promise<string>
  append(line: string): Promise<void>
}

/** The clock and sleep function, so that tests need not wait. */
export interface Pace {
  now(): number
  sleep(ms: number): Promise<void>
}
