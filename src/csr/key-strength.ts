/** Approvers refuse shorter RSA keys, and kcert does not create them. */
export const shortestRsaBits = 2048
