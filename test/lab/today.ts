/**
 * Suites that take turns where all together would take more than an hour: one group runs on a day.
 * Those that are in no group run every day: the whole rotation, the guides and what they rest on.
 */
export const alternating: readonly (readonly string[])[] = [
  ['renew', 'kubelet-manage', 'rotation-observer'],
  ['csr-faults', 'lab', 'approval'],
  ['rotation-resume'],
]

const dayMs = 86_400_000

/** Names of the suites that CI leaves out on a day (UTC); none where `KCERT_WHOLE` is set, as `npm test -- --whole` does. */
export function leftOutOn(date: Date, environment: NodeJS.ProcessEnv = process.env): readonly string[] {
  if (environment.CI === undefined || environment.KCERT_WHOLE !== undefined) return []
  const day = Math.floor(date.getTime() / dayMs)
  return alternating.filter((_, index) => index !== day % alternating.length).flat()
}
