/** Approvers refuse shorter RSA keys, and kcert makes none. */
export const shortestRsaBits = 2048
