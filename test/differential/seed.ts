/** Seed of all that is drawn at random: the same in every run, so that a landing does not hang on luck. KCERT_SEED looks elsewhere. */
export const seed = Number(process.env.KCERT_SEED ?? 20261122)
