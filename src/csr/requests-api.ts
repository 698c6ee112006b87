/** A CertificateSigningRequest of the API server; unknown fields are kept. */
export interface RequestObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name?: string
    readonly generateName?: string
    readonly uid?: string
    readonly resourceVersion?: string
    /** RFC 3339 */
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: {
    /** PEM in base64. */
    readonly request: string
    readonly signerName: string
    readonly usages?: readonly string[]
    readonly expirationSeconds?: number
    /** The user that created the object, as the API server authenticated it; absent before that. */
    readonly username?: string
    readonly uid?: string
    readonly groups?: readonly string[]
    readonly extra?: Readonly<Record<string, readonly string[]>>
  }
  readonly status?: {
    /** PEM in base64. */
    readonly certificate?: string
    readonly conditions?: readonly ObjectCondition[]
  }
}

export interface ObjectCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastUpdateTime?: string
  readonly lastTransitionTime?: string
}

/** The selectors of a list, which the API server applies. */
export interface RequestSelection {
  readonly signerName?: string
  readonly labelSelector?: string
  /** In addition to spec.signerName, only metadata.name. */
  readonly fieldSelector?: string
}

export interface RequestChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: RequestObject
}

/**
 * The CertificateSigningRequests of a cluster. Every call throws a KcertError: KCERT_API_UNAUTHORIZED, KCERT_API_CLIENT_EXPIRED,
 * KCERT_API_FORBIDDEN, KCERT_API_CONFLICT (the object changed, or exists already), KCERT_API_INVALID, KCERT_API_NOT_FOUND, or
 * KCERT_UNREACHABLE when all retries failed. A write with a lost connection may have happened: read again.
 */
export interface RequestsApi {
  /** All matching objects, page by page. When the list expires in between, it starts again, and an object may come twice. */
  list(selection?: RequestSelection): AsyncIterable<RequestObject>
  /** Undefined when no object has this name. */
  get(name: string): Promise<RequestObject | undefined>
  /** With `dryRun`, the API server does not store the object (dryRun=All). */
  create(object: RequestObject, choice?: { readonly dryRun: boolean }): Promise<RequestObject>
  /**
   * Writes conditions Approved and Denied. The object's UID and resourceVersion are preconditions. `confirm` is called right before
   * each attempt, also after a lost answer, and may stop it by an error, which is thrown.
   */
  replaceApproval(object: RequestObject, confirm?: () => void): Promise<RequestObject>
  /** Writes status.certificate and the condition Failed, under the same preconditions. */
  replaceStatus(object: RequestObject): Promise<RequestObject>
  /**
   * The current object and each change of it until the signal aborts. A broken connection is restored without missing a change. A
   * name that does not exist yet is waited for.
   */
  watch(name: string, signal: AbortSignal): AsyncIterable<RequestChange>
}
