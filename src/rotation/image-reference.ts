/** Registry, repository, tag and digest of an image. The container runtime knows the exact rules. */
export const imageReference = /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,511}$/
