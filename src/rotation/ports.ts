import type { PatchObject, Probe, RestartComponent, RollWorkload, WriteFile } from './action.ts'
import type { CertificateRecord } from './certificate-record.ts'
import type { HandshakeRate, Observed, SectionName } from './snapshot.ts'

// What the rotation needs of the world. src/rotation-io/ and test/fakes/simulated-cluster* implement it; one contract suite holds for both.

/**
 * Looks at the cluster. Never throws for a node that does not answer: it is `unreachable`, and its files are absent. Throws
 * KcertError when no API server answers.
 */
export interface Observer {
  /**
   * Fetches these sections and no others; `evidence` and `intents` are the journal's and are left to the runner. `remembered`: CAs
   * of the rotation that no node may have any more, for `stored`.
   */
  observe<Section extends SectionName>(
    sections: readonly Section[],
    remembered?: readonly CertificateRecord[],
  ): Promise<Observed<Section>>
}

/**
 * Does what an action says, once, and comes back when it is done. Throws KCERT_ROTATION_DRIFT when a file or object is not what
 * the action replaces, KCERT_UNREACHABLE, KCERT_FILE_NOT_WRITTEN. What an action has done already is not done again. Whatever a
 * write replaces is copied first, with its phase, into the index on the node.
 */
export interface Executor {
  write(action: WriteFile): Promise<void>
  patch(action: PatchObject): Promise<void>
  /** Comes back when another process than `replaces` runs and is healthy. */
  restart(action: RestartComponent): Promise<void>
  roll(action: RollWorkload): Promise<void>
  /** Tries until it succeeds or the deadline has passed; the answer is evidence either way. */
  probe(action: Probe): Promise<ProbeAnswer>
}

/** What a probe says, and what it measured. */
export interface ProbeAnswer {
  readonly ok: boolean
  readonly detail: string
  /** Of `handshake-rate`. */
  readonly rate?: HandshakeRate
  /** Of `handshake-errors`: clients that failed and are waived, with reason and count. */
  readonly accepted?: readonly string[]
  /** Of `handshake-errors`: addresses of clients that refuse the certificate, or whose own is refused. */
  readonly refusing?: readonly string[]
}

/** The journal's file. `append` comes back when the line is on the disk; when it throws, the act does not happen. */
export interface JournalFile {
  read(): Promise<string>
  append(line: string): Promise<void>
}

/** Time that passes, so that tests need not wait. */
export interface Pace {
  now(): number
  sleep(ms: number): Promise<void>
}
