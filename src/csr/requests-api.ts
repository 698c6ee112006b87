/** A CertificateSigningRequest as the API server writes and reads it; fields that kcert does not name travel along. */
export interface RequestObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name?: string
    readonly generateName?: string
    readonly uid?: string
    readonly resourceVersion?: string
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

/** What narrows a list; the API server does the narrowing. */
export interface RequestSelection {
  readonly signerName?: string
  readonly labelSelector?: string
  /** Besides the signer's: metadata.name alone. */
  readonly fieldSelector?: string
}

export interface RequestChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: RequestObject
}

/**
 * The CertificateSigningRequests of a cluster. Every call throws a KcertError: KCERT_API_UNAUTHORIZED, KCERT_API_CLIENT_EXPIRED, KCERT_API_FORBIDDEN,
 * KCERT_API_CONFLICT (the object is not what it was, or exists already), KCERT_API_INVALID, KCERT_API_NOT_FOUND, or
 * KCERT_UNREACHABLE once what may be tried again was tried. A write that was cut off may have happened: read again.
 */
export interface RequestsApi {
  /** All that match, page by page; a list that grew too old in between is begun again, so that one may come twice. */
  list(selection?: RequestSelection): AsyncIterable<RequestObject>
  /** Undefined when there is none of this name. */
  get(name: string): Promise<RequestObject | undefined>
  /** With `dryRun` the API server does all but keep the object (dryRun=All). */
  create(object: RequestObject, choice?: { readonly dryRun: boolean }): Promise<RequestObject>
  /** Writes conditions Approved and Denied. The object's UID and resourceVersion are preconditions. */
  replaceApproval(object: RequestObject): Promise<RequestObject>
  /** Writes status.certificate and the condition Failed, under the same preconditions. */
  replaceStatus(object: RequestObject): Promise<RequestObject>
  /**
   * The object as it is and each change of it until the signal is given; broken connections are made anew, and what changed
   * meanwhile is seen. A name that is not there yet is waited for.
   */
  watch(name: string, signal: AbortSignal): AsyncIterable<RequestChange>
}
