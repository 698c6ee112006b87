import { approvalFactsContract } from './approval-facts.ts'
import { factsInMemory, factsOnFake } from './facts-on-the-fake.ts'
import { objectsApiContract } from './objects-api.ts'
import { stageOnFake } from './on-the-fake.ts'
import { requestsApiContract } from './requests-api.ts'

// Checks the fakes against their contracts (test/fakes/*.md); test/lab/api-contract.test.ts runs the same suites on a real API
// server.

requestsApiContract(stageOnFake)
objectsApiContract(stageOnFake)
approvalFactsContract('in memory', factsInMemory)
approvalFactsContract('of the fake API server', factsOnFake)
