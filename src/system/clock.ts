/** Returns the current time. Only this type's implementation reads the machine's clock, so tests can set the time elsewhere. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()
