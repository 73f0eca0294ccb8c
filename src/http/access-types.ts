/** What access needs to know of a request. */
export interface Visit {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Of the connection; a header could say anything. */
  address: string;
}
