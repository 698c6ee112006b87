/** Seed of all random values. It is the same in every run, so that a result does not depend on chance. KCERT_SEED changes it. */
export const seed = Number(process.env.KCERT_SEED ?? 20261122)
