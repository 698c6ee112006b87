/** Returns the present. The one place that reads the machine's clock, so that everything else can be given a time. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()
