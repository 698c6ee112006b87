// What `kcert controller` writes to Events, and `kcert csr explain` reads.

/** source.component of its Events. */
export const controllerName = 'kcert-controller'

/** Events on objects without a namespace are in this one. */
export const eventNamespace = 'default'

/** The reason of an Event on a request that the controller leaves pending. */
export const leftPending = 'NotApproved'

/** An Event of the controller. Any user who may create Events can write one. */
export interface ControllerEvent {
  readonly reason: string
  readonly message: string
  /** RFC 3339 */
  readonly time: string
}
