declare module 's3rver' {
  import type { AddressInfo } from 'node:net';

  interface Options {
    port: number;
    address: string;
    silent: boolean;
    directory: string;
    configureBuckets: ReadonlyArray<{ name: string }>;
  }

  export interface Stored {
    size: number;
    md5: string;
  }

  interface StoredObject {
    bucket: string;
    key: string;
    content: AsyncIterable<Buffer>;
    metadata: object;
  }

  interface Store {
    getResourcePath(bucket: string, key: string | undefined, resource: string): string;
    putMetadata(bucket: string, key: string, metadata: object, md5: string): Promise<void>;
    putObject(object: StoredObject): Promise<Stored>;
    putPart(bucket: string, uploadId: string, part: number, content: AsyncIterable<Buffer>): Promise<Stored>;
  }

  export default class S3rver {
    constructor(options: Options);
    readonly store: Store;
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  }
}
