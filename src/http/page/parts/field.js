import { h } from '../dom/h.js';

/** An input with its name above it. @param {string} id @param {string} label @param {HTMLElement} input */
export const field = (id, label, input) => h('div', { class: 'field' }, h('label', { for: id }, label), input);

/** @param {string} id @param {string} label @param {string} value `2026-11-15` */
export const dateField = (id, label, value) =>
  field(id, label, h('input', { id, name: id, type: 'date', value, required: true }));
