import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { BullQueue, JobQueue } from '../jobs/bull.ts';

export const QUEUES_PATH = '/queues';

/**
 * Bull Board, to look at only: jobs are hints, and what people may do with them is done by the verbs of the API. What jobs
 * carry is hidden: names and windows today, but nobody should have to trust that.
 */
export function queueBoard(queue: JobQueue, path: string, home: string) {
  const server = new FastifyAdapter().setBasePath(path);
  createBullBoard({
    queues: Object.values(queue.queues).map((each) => new HiddenQueue(each)),
    serverAdapter: server,
    options: {
      uiConfig: {
        boardTitle: 'Tributary queues',
        hideRedisDetails: true,
        miscLinks: [{ text: 'Back to Tributary', url: home }],
      },
    },
  });
  // Its own would answer with the words of whatever was thrown.
  server.setErrorHandler(() => ({
    status: 500,
    body: { error: 'ERRORS.INTERNAL_SERVER_ERROR', message: 'the queue does not answer' },
  }));
  return server.registerPlugin();
}

const HIDDEN = '(hidden)';

class HiddenQueue extends BullMQAdapter {
  constructor(queue: BullQueue) {
    super(queue, { readOnlyMode: true });
    this.setFormatter('data', () => HIDDEN);
    this.setFormatter('returnValue', () => HIDDEN);
    this.setFormatter('progress', () => '');
  }

  override async getJobSchedulers() {
    return (await super.getJobSchedulers()).map(({ template: _, ...scheduler }) => scheduler);
  }

  override async getJobLogs(): Promise<string[]> {
    return [];
  }
}

/**
 * Its page would fetch letters from another company's server, and paint its "Loading" with styles of its own. The policy
 * forbids both; without them nothing is even tried.
 */
export const withinPolicy = (payload: unknown): unknown =>
  typeof payload === 'string'
    ? payload.replace(/<link[^>]+href="https?:[^>]*>|<style>.*?<\/style>| style="[^"]*"/gs, '')
    : payload;
